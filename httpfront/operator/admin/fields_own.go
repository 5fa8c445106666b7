package admin

import (
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

// zeroTime is how Go writes a time that nobody has set.
const zeroTime = "0001-01-01T00:00:00Z"

// zeroed takes the zero of the fields with these names for nothing said, since clients in Go send
// it for what is not set. Of limits it is refused: who sends it may mean it.
func zeroed[T any](fields []field[T], names ...string) []field[T] {
	for i := range fields {
		if f := &fields[i]; slices.Contains(names, f.name) {
			f.zero = value{kind: kindText}
			switch s := f.schema(created); {
			case s["type"] == "integer":
				f.zero = value{kind: kindNumber, text: "0"}
			case s["format"] == "date-time":
				f.zero.text = zeroTime
			}
			f.meaning += " " + f.zero.String() + " is as if it were left out."
		}
	}
	return fields
}

// noEffect tells whoever asks for something of it that nothing comes of it.
func noEffect[T any](f field[T], harmless string) field[T] {
	read := f.read
	f.read = func(r *reader, v value, into, was *T) {
		before := len(r.mistakes)
		read(r, v, into, was)
		if len(r.mistakes) == before && v.text != harmless {
			r.messages = append(r.messages, Mistake{
				Code: CodeNoEffect, Field: join(r.at, f.name), Value: v.String(),
				Message: fmt.Sprintf("%s: %s is kept, and without effect: visitors are not checked for being human here", join(r.at, f.name), v),
			})
		}
	}
	return f
}

var routeFields = fromTable(room.RouteFields, itself[room.Route], room.Route{Path: "/"})

func additionalRoutes() roomField {
	const name = "additional_routes"
	f := roomField{
		name: name, meaning: "Other hosts and paths of the same room; they need a cookie_suffix. Default none.",
		allowed: fmt.Sprintf("a list of at most %d objects with host, path or both", room.MaxRoutes),
		schema:  func(u use) Schema { return listOf(objectOf(routeFields, u)).with("maxItems", room.MaxRoutes) },
	}
	f.read = func(r *reader, v value, into, _ *catalog.Room) {
		switch {
		case v.kind != kindList:
			f.mistype(r, v)
			return
		case len(v.items) > room.MaxRoutes:
			f.refuse(r, v)
			return
		}
		routes := make([]room.Route, len(v.items))
		for i, item := range v.items {
			r.within(fmt.Sprintf("%s[%d]", name, i), item, func() {
				routes[i] = decode(r, item, routeFields, &room.Route{Path: "/"}, nil)
			})
		}
		into.Settings.AdditionalRoutes = routes
	}
	f.show = func(r *catalog.Room, now time.Time) any {
		all := make([]members, len(r.Settings.AdditionalRoutes))
		for i := range all {
			all[i] = show(&r.Settings.AdditionalRoutes[i], routeFields, now)
		}
		return all
	}
	f.copy = func(from, into *catalog.Room) {
		into.Settings.AdditionalRoutes = slices.Clone(from.Settings.AdditionalRoutes)
	}
	return f
}
