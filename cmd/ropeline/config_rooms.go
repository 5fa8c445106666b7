package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/gate/expr"
	"github.com/ropeline/ropeline/httpfront/server"
	"github.com/ropeline/ropeline/node/room"
)

// rooms reads the list of rooms, and what each says of the way to the site. What a room
// does not say it takes from what cfg says outside the list.
func (r *configReader) rooms(node ast.Node, cfg *config) ([]room.Settings, []httpfront.Route) {
	seq, ok := node.(*ast.SequenceNode)
	if !ok || len(seq.Values) == 0 {
		r.fail(node, "rooms", fmt.Errorf("a list with at least one room is wanted, each starting with \"- room: NAME\"; this is a %s", kindOf(node)))
		return nil, nil
	}
	var rooms []room.Settings
	var routes []httpfront.Route
	var earlier server.EarlierRooms
	for i, item := range seq.Values {
		s := cfg.Room
		s.Name = ""
		fs := pflag.NewFlagSet("room", pflag.ContinueOnError)
		roomFlags(fs, &s)
		var route httpfront.Route
		maxBodyFlag(fs, &route.Body)
		field := fmt.Sprintf("rooms[%d]", i)
		r.lines[field] = positionOf(item)
		before := len(r.errs)
		var proxy proxyNodes
		var parts roomParts
		var brought broughtNodes
		var name, description ast.Node
		r.mapping(item, field, fs, brought.lists(broughtByRooms, proxy.lists(parts.lists(lists{"name": &name, "description": &description}))))
		r.passOver(brought)
		r.nameOrRoom(name, field, fs)
		r.describe(description)
		r.parts(parts, &s, field+".", fs)
		route.Name, route.Host, route.Path, route.Also = s.Name, s.Host, s.Path, s.AdditionalRoutes
		route.Origins = r.roomOrigins(proxy, field, cfg.Proxy.Origins)
		routes = append(routes, route) // also if it says nothing: else a shorter path of another room takes its requests
		if s.Name == "" && len(r.errs) == before {
			r.fail(item, field, errors.New("every room in the list needs a name: \"room: NAME\""))
		}
		r.nameRoom(s.Name, before)
		refused := r.takeRefusals(before)
		maps.Copy(refused, r.outside)
		r.checkFront(s, field, cfg.Front.Lists)
		r.check(s, field, refused)
		if refused.has("room name host path cookie-suffix additional-routes " + field) {
			continue
		}
		if err := earlier.Add(&s); err != nil {
			r.fail(item, field, err)
		}
		rooms = append(rooms, s)
	}
	return rooms, routes
}

// nameRoom adds the name of their room to the errors from the given one on.
func (r *configReader) nameRoom(name string, from int) {
	for _, err := range r.errs[from:] {
		if e, ok := err.(*fieldError); ok {
			e.room = name
		}
	}
}

// refuseRoomName refuses a name beside the list of rooms: it would name none of
// them.
func (r *configReader) refuseRoomName(fs *pflag.FlagSet) {
	const name = "room"
	flag := fs.Lookup(name)
	switch at, ok := r.lines[name]; {
	case flag == nil:
	case flag.Changed:
		r.errs = append(r.errs, fmt.Errorf("--%s %s: the rooms of %s have names of their own under \"rooms\"; leave the flag out", name, flag.Value, r.file))
	case ok:
		r.errs = append(r.errs, &fieldError{file: r.file, at: at, field: name, err: errors.New("the rooms under \"rooms\" have names of their own; leave this line out, or put it into the list")})
	}
}

// roomParts are those parts of a room that only a file can say. What it does not say
// is nil.
type roomParts struct{ events, routes, cookie, rules, page ast.Node }

// lists adds the parts to what a mapping may have beside flags.
func (p *roomParts) lists(more lists) lists {
	more["events"], more["additional-routes"], more["cookie-attributes"] = &p.events, &p.routes, &p.cookie
	more["rules"], more["custom-page-html"] = &p.rules, &p.page
	return more
}

// parts reads what the file says of s. prefix is what stands before the names of its
// lines, and fs has the flags of the same mapping.
func (r *configReader) parts(p roomParts, s *room.Settings, prefix string, fs *pflag.FlagSet) {
	if p.events != nil {
		s.Events = r.events(p.events, prefix)
	}
	if p.routes != nil {
		s.AdditionalRoutes = r.routes(p.routes, prefix)
	}
	if p.cookie != nil {
		r.cookie(p.cookie, &s.Front.Cookie, prefix)
	}
	if p.rules != nil {
		s.Front.Rules = r.rules(p.rules, prefix)
	}
	if page, ok := r.page(p.page, prefix, fs); ok {
		s.Front.CustomPage = page
	}
}

// list returns the elements of a list and where it stands in the file, and remembers
// the lines of all. what says what is wanted.
func (r *configReader) list(node ast.Node, prefix, name, what string) []ast.Node {
	seq, ok := node.(*ast.SequenceNode)
	if !ok {
		r.fail(node, name, fmt.Errorf("%s; this is a %s", what, kindOf(node)))
		return nil
	}
	r.lines[prefix+name] = positionOf(node)
	for i, item := range seq.Values {
		r.lines[fmt.Sprintf("%s%s[%d]", prefix, name, i)] = positionOf(item)
	}
	return seq.Values
}

// routes reads a list of additional routes.
func (r *configReader) routes(node ast.Node, prefix string) []room.Route {
	const name = "additional-routes"
	items := r.list(node, prefix, name, "a list of routes is wanted, each with \"host: HOST\", \"path: /PATH\" or both")
	routes := make([]room.Route, len(items))
	for i, item := range items {
		fs := pflag.NewFlagSet("route", pflag.ContinueOnError)
		routeFlags(fs, &routes[i])
		field := fmt.Sprintf("%s%s[%d]", prefix, name, i)
		before := len(r.errs)
		r.mapping(item, field, fs, nil)
		r.judge(fmt.Sprintf("%s[%d]", name, i), before)
		_, host := r.lines[field+".host"]
		_, path := r.lines[field+".path"]
		if len(r.errs) == before && !host && !path {
			r.fail(item, field, errors.New("every route needs a \"host:\", a \"path:\" or both"))
		}
	}
	return routes
}

// events reads a list of events. prefix is what stands before "events" in the
// names of its lines.
func (r *configReader) events(node ast.Node, prefix string) []room.Event {
	items := r.list(node, prefix, "events", "a list of events is wanted, each starting with \"- name: NAME\"")
	events := make([]room.Event, len(items))
	for i, item := range items {
		fs := pflag.NewFlagSet("event", pflag.ContinueOnError)
		eventFlags(fs, &events[i])
		field := fmt.Sprintf("%sevents[%d]", prefix, i)
		before := len(r.errs)
		var html ast.Node
		var brought broughtNodes
		r.mapping(item, field, fs, brought.lists(broughtByEvents, lists{"custom-page-html": &html}))
		r.passOver(brought)
		if html != nil && isNull(html) {
			html = nil
		}
		if page, ok := r.page(html, field+".", fs); ok {
			events[i].CustomPage = &page
		}
		sound := len(r.errs) == before
		for _, key := range []string{"name", "event-start-time", "event-end-time"} {
			if _, ok := r.lines[field+"."+key]; !ok && sound {
				r.fail(item, field, fmt.Errorf("every event needs a line %q", key+":"))
			}
		}
		r.judge(fmt.Sprintf("events[%d]", i), before)
	}
	return events
}

// check has the room's own rules look at s, which stands in the file under the
// name field, "" for the room outside the list, and says where the mistakes are. It says
// nothing of what was refused.
func (r *configReader) check(s room.Settings, field string, refused refusals) {
	var errs []error
	for _, err := range joined(s.Validate()) {
		if e, ok := errors.AsType[*room.FieldError](err); !ok || !refused.has(e.Error()) && (s.Name != "" || e.Field != "name") {
			errs = append(errs, err)
		}
	}
	r.failAll(errors.Join(errs...), s.Name, field)
}

// judge notes that a part has a mistake inside, if there are more of them than before.
func (r *configReader) judge(part string, before int) {
	if len(r.errs) > before {
		r.unsound = append(r.unsound, part)
	}
}

// takeRefusals returns what was refused from the given error on.
func (r *configReader) takeRefusals(from int) refusals {
	refused := refusals{}
	for _, err := range r.errs[from:] {
		if e, ok := errors.AsType[*fieldError](err); ok {
			refused.add(e.field)
		}
	}
	for _, part := range r.unsound {
		refused[part] = true
	}
	r.unsound = nil
	return refused
}

// checkFront does the same for what is the front's.
func (r *configReader) checkFront(s room.Settings, field string, named expr.Lists) {
	r.failAll(httpfront.CheckRoom(&s, named), s.Name, field)
}

// failAll adds each part of err, which is about the room of that name. What rooms
// share is said once.
func (r *configReader) failAll(err error, name, field string) {
	for _, err := range joined(err) {
		located := r.locate(err, name, field)
		if !slices.ContainsFunc(r.errs, func(e error) bool { return e.Error() == located.Error() }) {
			r.errs = append(r.errs, located)
		}
	}
}

// joined returns what was joined into err.
func joined(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// locate says in which line the setting stands that err is about: its own line,
// else that of what it is part of. What a room does not say itself may stand
// outside the list. Where the file says nothing, the command line does, and err
// is left as it is.
func (r *configReader) locate(err error, name, field string) error {
	e, ok := errors.AsType[*room.FieldError](err)
	if !ok {
		return err
	}
	says := errors.New(e.Reason())
	for _, prefix := range []string{field + ".", ""} {
		for part := e.Field; part != ""; part = part[:max(strings.LastIndexAny(part, ".["), 0)] {
			at, ok := r.lines[prefix+part]
			switch {
			case !ok:
			case prefix == "":
				return &fieldError{file: r.file, at: at, field: e.Field, err: says}
			default:
				return &fieldError{r.file, at, name, e.Field, says}
			}
		}
	}
	if at, ok := r.lines[field]; ok {
		return &fieldError{r.file, at, name, e.Field, says}
	}
	return err
}
