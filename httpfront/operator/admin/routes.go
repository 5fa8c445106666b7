package admin

import (
	"net/http"
	"slices"
	"strings"
)

// The routes of rooms, events, rules and zones. Each is there in the dialect and here, with
// the same fields and the same code.

const (
	dialectRooms = dialectPath + "zones/{zone}/waiting_rooms"
	ownRooms     = ownPath + "rooms"
	ownZones     = ownPath + "zones"
)

var zoneQuery = Parameter{"zone", "The zone of the room. It is needed where rooms of several zones have the name that is given.", zoneName}

// zoneName is the schema of a zone's name.
var zoneName = Schema{"type": "string", "pattern": "^[-_.0-9A-Za-z]{1,64}$"}

// both returns a route in the dialect, and here.
func both(dialect, own string, r Route) []Route {
	d, o := r, r
	d.Path, d.ID, d.Tag = dialect, "v4"+strings.ToUpper(r.ID[:1])+r.ID[1:], "v4: "+r.Tag
	o.Path = own
	d.Query = slices.Clone(r.Query)
	if strings.HasPrefix(own, ownRooms) {
		o.Query = append([]Parameter{zoneQuery}, r.Query...)
	}
	return []Route{d, o}
}

// ofRooms is both below the list of rooms.
func ofRooms(below string, r Route) []Route { return both(dialectRooms+below, ownRooms+below, r) }

func roomRoutes() []Route {
	const tag = "rooms"
	list := Route{Method: http.MethodGet, Scope: Read, ID: "listRooms", Tag: tag, Summary: "Lists rooms, oldest first.", Query: pageQuery, Answer: Ref("Room"), List: true, Handle: listRooms}
	account := list
	account.Path, account.ID, account.Tag = dialectPath+"accounts/{account}/waiting_rooms", "v4ListRoomsOfAccount", "v4: "+tag
	account.Summary = "Lists the rooms of all zones. There is one account, whatever it is called."
	return slices.Concat(
		ofRooms("", list), []Route{account},
		ofRooms("", Route{Method: http.MethodPost, Scope: Write, ID: "createRoom", Tag: tag, Summary: "Makes a room.", Body: Ref("RoomNew"), Answer: Ref("Room"), Handle: createRoom}),
		ofRooms("/{room}", Route{Method: http.MethodGet, Scope: Read, ID: "getRoom", Tag: tag, Summary: "Shows a room.", Answer: Ref("Room"), Handle: aboutRoom(getRoom)}),
		ofRooms("/{room}", Route{
			Method: http.MethodPut, Scope: Write, ID: "replaceRoom", Tag: tag, Body: Ref("RoomNew"), Answer: Ref("Room"), Handle: changeRoom(replace),
			Summary: "Replaces a room. What is left out gets its default; fields that are only here stay as they are. Events and rules stay.",
		}),
		ofRooms("/{room}", Route{Method: http.MethodPatch, Scope: Write, ID: "changeRoom", Tag: tag, Summary: "Changes what is named of a room.", Body: Ref("RoomChange"), Answer: Ref("Room"), Handle: changeRoom(change)}),
		ofRooms("/{room}", Route{Method: http.MethodDelete, Scope: Write, ID: "deleteRoom", Tag: tag, Summary: "Deletes a room with its events and rules.", Answer: Ref("Deleted"), Handle: deleteRoom}),
		ofRooms("/{room}/status", Route{Method: http.MethodGet, Scope: Read, ID: "getRoomStatus", Tag: tag, Summary: "Tells what goes on in a room, over the whole mesh.", Answer: Ref("Status"), Handle: aboutRoom(roomStatus)}),
		both(dialectRooms+"/preview", ownPath+"preview", Route{
			Method: http.MethodPost, Scope: Write, ID: "preview", Tag: tag,
			Summary: "Keeps a page for a while, to be looked at.", Body: Ref("PreviewNew"), Answer: Ref("Preview"), Handle: preview,
		}),
	)
}

func eventRoutes() []Route {
	const tag, all, one = "events", "/{room}/events", "/{room}/events/{event}"
	return slices.Concat(
		ofRooms(all, Route{Method: http.MethodGet, Scope: Read, ID: "listEvents", Tag: tag, Summary: "Lists the events of a room, oldest first.", Query: pageQuery, Answer: Ref("Event"), List: true, Handle: aboutRoom(listEvents)}),
		ofRooms(all, Route{Method: http.MethodPost, Scope: Write, ID: "createEvent", Tag: tag, Summary: "Plans an event.", Body: Ref("EventNew"), Answer: Ref("Event"), Handle: createEvent}),
		ofRooms(one, Route{Method: http.MethodGet, Scope: Read, ID: "getEvent", Tag: tag, Summary: "Shows an event. What is null is the room's.", Answer: Ref("Event"), Handle: readEvent(false)}),
		ofRooms(one+"/details", Route{Method: http.MethodGet, Scope: Read, ID: "getEventDetails", Tag: tag, Summary: "Shows what holds while an event is under way.", Answer: Ref("Event"), Handle: readEvent(true)}),
		ofRooms(one, Route{Method: http.MethodPut, Scope: Write, ID: "replaceEvent", Tag: tag, Summary: "Replaces an event. What is left out gets its default, or inherits.", Body: Ref("EventNew"), Answer: Ref("Event"), Handle: changeEvent(replace)}),
		ofRooms(one, Route{Method: http.MethodPatch, Scope: Write, ID: "changeEvent", Tag: tag, Summary: "Changes what is named of an event.", Body: Ref("EventChange"), Answer: Ref("Event"), Handle: changeEvent(change)}),
		ofRooms(one, Route{Method: http.MethodDelete, Scope: Write, ID: "deleteEvent", Tag: tag, Summary: "Deletes an event.", Answer: Ref("Deleted"), Handle: deleteEvent}),
	)
}

func ruleRoutes() []Route {
	const tag, all, one = "rules", "/{room}/rules", "/{room}/rules/{rule}"
	rules := func(method string, scope Scope, id, summary string, body Schema, h Handler) Route {
		return Route{Method: method, Scope: scope, ID: id, Tag: tag, Summary: summary, Body: body, Answer: Ref("Rule"), List: true, Handle: h}
	}
	return slices.Concat(
		ofRooms(all, rules(http.MethodGet, Read, "listRules", "Lists the rules of a room, in the order in which they are asked.", nil, aboutRoom(listRules))),
		ofRooms(all, rules(http.MethodPost, Write, "createRule", "Adds a rule, at the end if it has no position. All are answered.", Ref("RuleNew"), createRule)),
		ofRooms(all, rules(http.MethodPut, Write, "replaceRules", "Replaces all rules. Those that are given with their id keep it.", listOf(Ref("RuleListed")), replaceRules)),
		ofRooms(one, rules(http.MethodPatch, Write, "changeRule", "Changes what is named of a rule, or moves it. All are answered.", Ref("RuleChange"), changeRule)),
		ofRooms(one, rules(http.MethodDelete, Write, "deleteRule", "Deletes a rule. All others are answered.", nil, deleteRule)),
	)
}

func zoneRoutes() []Route {
	const tag, dialect, own = "zones", dialectRooms + "/settings", ownZones + "/{zone}"
	all := slices.Concat(
		both(dialect, own, Route{Method: http.MethodGet, Scope: Read, ID: "getZone", Tag: tag, Summary: "Shows the settings of a zone.", Handle: getZone}),
		both(dialect, own, Route{Method: http.MethodPut, Scope: Write, ID: "replaceZone", Tag: tag, Summary: "Replaces the settings of a zone.", Handle: changeZone(replace)}),
		both(dialect, own, Route{Method: http.MethodPatch, Scope: Write, ID: "changeZone", Tag: tag, Summary: "Changes what is named of the settings of a zone.", Handle: changeZone(change)}),
	)
	for i := range all {
		schema := "Zone"
		if strings.HasPrefix(all[i].Path, dialectPath) {
			schema = "ZoneSettings"
		}
		all[i].Answer = Ref(schema)
		if all[i].Method != http.MethodGet {
			all[i].Body = Ref(schema + "Change")
		}
	}
	return append(all, Route{
		Method: http.MethodGet, Path: ownZones, Scope: Read, ID: "listZones", Tag: tag,
		Summary: "Lists the zones that have a room or settings.", Query: pageQuery, Answer: Ref("Zone"), List: true, Handle: listZones,
	})
}
