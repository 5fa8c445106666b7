package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const roomsPath = "/api/v1/rooms"

func roomPath(room string) string { return roomsPath + "/" + escaped(room) }

// routesOf returns where a room stands.
func routesOf(o object) string {
	routes := []string{orEvery(o.at("host")) + o.at("path")}
	for _, r := range o.list("additional_routes") {
		routes = append(routes, orEvery(r.at("host"))+r.at("path"))
	}
	return strings.Join(routes, "\n")
}

func orEvery(host string) string {
	if host == "" {
		return "*"
	}
	return host
}

// switchesOf returns what is switched on in a room.
func switchesOf(o object) string {
	var on []string
	for _, name := range []string{"suspended", "queue_all", "dry_run"} {
		if o[name] == true {
			on = append(on, strings.ReplaceAll(name, "_", " "))
		}
	}
	return strings.Join(on, ", ")
}

var roomColumns = []column{
	col("Room", "name"), col("Zone", "zone"),
	{"At", routesOf, false},
	num("Active at most", "total_active_users"),
	num("New a minute", "new_users_per_minute"), col("Method", "queueing_method"), col("Policy", "policy"),
	{"Switched on", switchesOf, false},
}

const zoneUsage = "the zone of the room, where rooms of several zones have that name"

func newRoomCommand() *cobra.Command {
	list, listCmd := reading("list", "List rooms", "  ropeline room list --zone sales", 0, true,
		func([]string) string { return roomsPath }, rendered(listTable(roomColumns)))
	list.withZone(listCmd, "those of this zone only")
	show, showCmd := reading("show ROOM", "Show the settings of a room", "  ropeline room show shop", 1, false,
		func(args []string) string { return roomPath(args[0]) }, titled("room"))
	show.withZone(showCmd, zoneUsage)
	status, statusCmd := reading("status ROOM", "Show what goes on in a room", "  ropeline room status shop --watch", 1, true,
		func(args []string) string { return roomPath(args[0]) + "/status" }, titled("status of"))
	status.withZone(statusCmd, zoneUsage)
	rights, rightsCmd := reading("rights ROOM", "Show who has the rights of a room", "  ropeline room rights shop", 1, true,
		func(args []string) string { return roomPath(args[0]) + "/rights" }, rightsTable)
	rights.withZone(rightsCmd, zoneUsage)
	return groupOf("room", "Make, change, look at and delete rooms", `Rooms are the mesh's: whichever node is told, all nodes have it within two seconds.
Settings are given as NAME=VALUE, with the names of the API; lists as a,b or as JSON.`,
		listCmd, showCmd, statusCmd, rightsCmd, newRoomCreate(), newRoomSet(), newRoomDelete())
}

func newRoomCreate() *cobra.Command {
	op := &operation{}
	cmd := op.command("create NAME SETTING…", "Make a room", "  ropeline room create shop host=shop.example total_active_users=500 new_users_per_minute=100", 1, -1,
		func(cmd *cobra.Command, c *client, args []string) error {
			body, err := c.settings(cmd.Context(), "RoomNew", args[1:], object{"name": args[0]})
			if err != nil {
				return err
			}
			raw, err := c.ask(cmd.Context(), "POST", roomsPath, op.query(), body)
			if err != nil {
				return err
			}
			return op.told(cmd, raw, fmt.Sprintf("room %s is made", args[0]))
		})
	op.show.Bind(cmd, false)
	return op.withZone(cmd, "the zone that it is in (default: default)")
}

func newRoomSet() *cobra.Command {
	op := &operation{}
	cmd := op.command("set ROOM SETTING…", "Change settings of a room", "  ropeline room set shop total_active_users=800\n  ropeline room set shop queue_all=true", 2, -1,
		func(cmd *cobra.Command, c *client, args []string) error {
			body, err := c.settings(cmd.Context(), "RoomChange", args[1:], nil)
			if err != nil {
				return err
			}
			raw, err := c.ask(cmd.Context(), "PATCH", roomPath(args[0]), op.query(), body)
			if err != nil {
				return err
			}
			return op.told(cmd, raw, fmt.Sprintf("room %s is changed: %s", args[0], strings.Join(args[1:], " ")))
		})
	op.show.Bind(cmd, false)
	return op.withZone(cmd, zoneUsage)
}

func newRoomDelete() *cobra.Command {
	op := &operation{}
	cmd := op.command("delete ROOM", "Delete a room with its events and rules", "  ropeline room delete shop --yes", 1, 1,
		func(cmd *cobra.Command, c *client, args []string) error {
			if err := op.sure(fmt.Sprintf("room %s is gone then, and its visitors go to the site without a queue", args[0])); err != nil {
				return err
			}
			raw, err := c.ask(cmd.Context(), "DELETE", roomPath(args[0]), op.query(), nil)
			if err != nil {
				return err
			}
			return op.told(cmd, raw, fmt.Sprintf("room %s is deleted", args[0]))
		})
	op.show.Bind(cmd, false)
	cmd.Flags().BoolVar(&op.yes, "yes", false, "it is meant")
	return op.withZone(cmd, zoneUsage)
}

// rightsTable renders who has which rights.
func rightsTable(args []string, raw json.RawMessage) (string, error) {
	o, err := decoded(raw)
	if err != nil {
		return "", err
	}
	s := tableOf("rights of "+args[0], o.list("ledgers"), []column{
		col("Site", "site"), col("Node", "name"), num("Held", "rights", "held", "places"), num("Free", "rights", "free", "places"),
		num("In use", "rights", "in_use"), num("Lent", "rights", "lent"), num("In stock", "rights", "in_stock"), num("Borrowed", "rights", "borrowed"),
		num("Per minute", "rights", "held", "per_minute"), num("Minted here", "rights", "minted_here", "places"), col("Alone", "rights", "alone"),
	})
	if missing := o.at("missing"); missing != "" {
		s += "\nno answer from " + Printable(missing)
	}
	return s, nil
}

var eventColumns = []column{
	col("Event", "name"), col("Starts", "event_start_time"), col("Ends", "event_end_time"), col("Pre-queue from", "prequeue_start_time"),
	num("Active at most", "total_active_users"), num("New a minute", "new_users_per_minute"), col("Method", "queueing_method"), col("Suspended", "suspended"), col("Id", "id"),
}

func newEventCommand() *cobra.Command {
	list, listCmd := reading("list ROOM", "List the events of a room", "  ropeline event list shop", 1, false,
		func(args []string) string { return roomPath(args[0]) + "/events" }, rendered(listTable(eventColumns)))
	list.withZone(listCmd, zoneUsage)
	create := &operation{}
	createCmd := create.command("create ROOM NAME SETTING…", "Plan an event",
		"  ropeline event create shop sale event_start_time=2026-12-01T10:00:00Z event_end_time=2026-12-01T12:00:00Z total_active_users=5000 new_users_per_minute=1000", 2, -1,
		func(cmd *cobra.Command, c *client, args []string) error {
			body, err := c.settings(cmd.Context(), "EventNew", args[2:], object{"name": args[1]})
			if err != nil {
				return err
			}
			raw, err := c.ask(cmd.Context(), "POST", roomPath(args[0])+"/events", create.query(), body)
			if err != nil {
				return err
			}
			return create.told(cmd, raw, fmt.Sprintf("event %s of room %s is planned", args[1], args[0]))
		})
	create.show.Bind(createCmd, false)
	create.withZone(createCmd, zoneUsage)
	return groupOf("event", "Plan, change and drop events of a room", `An event has settings of its own for a time, perhaps with a queue before it.
Events go by their name, or by their id where several have the name.`,
		listCmd, createCmd, newItemSet("event", "EVENT", "EventChange", "  ropeline event set shop sale suspended=true"), newItemDelete("event", "EVENT", "  ropeline event delete shop sale"))
}

var ruleColumns = []column{
	col("Expression", "expression"), col("Action", "action"), col("Enabled", "enabled"), col("Description", "description"), col("Id", "id"),
}

func newRuleCommand() *cobra.Command {
	list, listCmd := reading("list ROOM", "List the rules of a room, in the order in which they are asked", "  ropeline rule list shop", 1, false,
		func(args []string) string { return roomPath(args[0]) + "/rules" }, rendered(listTable(ruleColumns)))
	list.withZone(listCmd, zoneUsage)
	add := &operation{}
	addCmd := add.command("add ROOM EXPRESSION SETTING…", "Add a rule at the end",
		`  ropeline rule add shop 'starts_with(http.request.uri.path, "/health")' description='health checks'`, 2, -1,
		func(cmd *cobra.Command, c *client, args []string) error {
			body, err := c.settings(cmd.Context(), "RuleNew", args[2:], object{"expression": args[1]})
			if err != nil {
				return err
			}
			if _, said := body["action"]; !said {
				body["action"] = "bypass_waiting_room"
			}
			raw, err := c.ask(cmd.Context(), "POST", roomPath(args[0])+"/rules", add.query(), body)
			if err != nil {
				return err
			}
			return add.told(cmd, raw, fmt.Sprintf("room %s has the rule", args[0]))
		})
	add.show.Bind(addCmd, false)
	add.withZone(addCmd, zoneUsage)
	return groupOf("rule", "Say which requests a room has nothing to do with", "Rules go by their ids, as list shows them.",
		listCmd, addCmd, newItemSet("rule", "ID", "RuleChange", "  ropeline rule set shop ID enabled=false"), newItemDelete("rule", "ID", "  ropeline rule delete shop ID"))
}

// newItemSet returns the command that changes an event or a rule.
func newItemSet(kind, word, schema, example string) *cobra.Command {
	op := &operation{}
	cmd := op.command("set ROOM "+word+" SETTING…", "Change settings of one", example, 3, -1, func(cmd *cobra.Command, c *client, args []string) error {
		body, err := c.settings(cmd.Context(), schema, args[2:], nil)
		if err != nil {
			return err
		}
		path, err := op.item(cmd.Context(), c, kind, args[0], args[1])
		if err != nil {
			return err
		}
		raw, err := c.ask(cmd.Context(), "PATCH", path, op.query(), body)
		if err != nil {
			return err
		}
		return op.told(cmd, raw, fmt.Sprintf("%s %s of room %s is changed: %s", kind, args[1], args[0], strings.Join(args[2:], " ")))
	})
	op.show.Bind(cmd, false)
	return op.withZone(cmd, zoneUsage)
}

func newItemDelete(kind, word, example string) *cobra.Command {
	op := &operation{}
	cmd := op.command("delete ROOM "+word, "Delete one", example, 2, 2, func(cmd *cobra.Command, c *client, args []string) error {
		path, err := op.item(cmd.Context(), c, kind, args[0], args[1])
		if err != nil {
			return err
		}
		raw, err := c.ask(cmd.Context(), "DELETE", path, op.query(), nil)
		if err != nil {
			return err
		}
		return op.told(cmd, raw, fmt.Sprintf("%s %s of room %s is deleted", kind, args[1], args[0]))
	})
	op.show.Bind(cmd, false)
	return op.withZone(cmd, zoneUsage)
}

// item returns the path of an event or a rule, given its id or its name.
func (op *operation) item(ctx context.Context, c *client, kind, room, given string) (string, error) {
	all := roomPath(room) + "/" + kind + "s"
	raw, err := c.ask(ctx, "GET", all, op.query(), nil)
	if err != nil {
		return "", err
	}
	o, err := decoded(raw)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, item := range o.list("items") {
		if item.at("id") == given {
			return all + "/" + escaped(given), nil
		}
		if item.at("name") == given {
			ids = append(ids, item.at("id"))
		}
	}
	switch len(ids) {
	case 1:
		return all + "/" + escaped(ids[0]), nil
	case 0:
		return "", Refused{404, fmt.Sprintf("room %s has no %s %q; \"ropeline %s list %s\" shows those it has", room, kind, given, kind, room)}
	}
	return "", Refused{409, fmt.Sprintf("room %s has %d %ss called %q; give the id of one: %s", room, len(ids), kind, given, strings.Join(ids, ", "))}
}

// since returns how long ago a time was.
func since(s string) string {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return s
	}
	return time.Since(t).Round(time.Second).String()
}
