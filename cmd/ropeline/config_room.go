package main

import (
	"sync"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/page/lang"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/settings"
)

// roomFields are the settings of a room that are flags. Its name is "room": "name" is that
// of the node. What only a file can say is in roomParts.
var roomFields = sync.OnceValue(func() settings.Table[room.Settings] {
	fields := room.Fields(lang.Tags())
	name := fields.Pick("name")
	name[0].Name = "room"
	all := append(name, fields[1:]...)
	for i := range all {
		switch all[i].Name {
		case "message":
			all[i] = checked(all[i], func(s *room.Settings) error { return page.CheckMessage(s.Front.Message) })
		case "frame-ancestors":
			all[i] = checked(all[i], func(s *room.Settings) error { return page.CheckFrameAncestors(s.Front.FrameAncestors) })
		}
	}
	return all
})

// checked returns the field with what the front knows of it beyond its form.
func checked(f settings.Field[room.Settings], check func(*room.Settings) error) settings.Field[room.Settings] {
	of := f.Of
	f.Of = func(s *room.Settings) settings.Value {
		return checkedValue{of(s), func() error { return check(s) }}
	}
	return f
}

type checkedValue struct {
	settings.Value
	check func() error
}

// Set implements settings.Value. What is refused is taken out.
func (v checkedValue) Set(s string) error {
	if err := v.Value.Set(s); err != nil {
		return err
	}
	err := v.check()
	if err != nil {
		v.Clear()
	}
	return err
}

// roomFlags binds one room.
func roomFlags(fs *pflag.FlagSet, s *room.Settings) {
	bind(fs, s, roomFields())
	fs.Var(pageFile.At(&s.Front.CustomPage), "custom-page-file", "`file` with the waiting page, a Mustache template (default: the built-in page)")
}

// routeFlags binds one additional route of a room.
func routeFlags(fs *pflag.FlagSet, e *room.Route) { bind(fs, e, room.RouteFields) }

// ruleFlags binds one rule of a room.
func ruleFlags(fs *pflag.FlagSet, r *room.Rule) { bind(fs, r, room.RuleFields) }

// eventFlags binds one event of a room.
func eventFlags(fs *pflag.FlagSet, e *room.Event) {
	bind(fs, e, room.EventFields)
	fs.Var(settings.Optional(pageFile).At(&e.CustomPage), "custom-page-file", "instead of the room's")
}
