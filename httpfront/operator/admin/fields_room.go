package admin

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/ropeline/ropeline/httpfront/page/lang"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/settings"
)

// newRoom is a room with all its defaults; the two limits, the name and the host have none.
func newRoom() *catalog.Room {
	r := &catalog.Room{Settings: room.New()}
	r.Settings.Front.NoJSON = true // as the dialect has it
	return r
}

type roomField = field[catalog.Room]

var (
	turnstileModes   = settings.Word("off", "invisible", "visible_non_interactive", "visible_managed")
	turnstileActions = settings.Word("log", "infinite_queue")
)

// description is what operators say of something for each other.
func description[T any](at func(*T) *string) settings.Field[T] {
	return settings.New("description", "for operators", settings.Text(500, "a text of at most 500 characters"), "", at)
}

// page is a page of operators, which is looked at with the whole room.
func page[T any](name, meaning string, at func(*T) *string) settings.Field[T] {
	return settings.New(name, meaning, settings.String("page", `a Mustache template of at most 1048576 bytes; "" for the built-in page`, nil), "", at)
}

// roomFields are the fields of a room, in the order in which they are shown: those of the
// table, and those that only this API has.
var roomFields = sync.OnceValue(func() []roomField {
	const dialect = "name host path cookie_suffix total_active_users new_users_per_minute disable_session_renewal queueing_method queue_all suspended " +
		"queueing_status_code enabled_origin_commands json_response_enabled default_template_language"
	all := owned(fromTable(room.Fields(lang.Tags()), func(r *catalog.Room) *room.Settings { return &r.Settings }, newRoom().Settings), dialect)
	all = zeroed(slices.Concat(identityFields(), sessionFields(), besidesSession(all), otherFields()), "path", sessionMinutes, "queueing_status_code")
	order := []string{
		"id", "zone", "name", "description", "host", "path", "additional_routes", "cookie_suffix", "cookie_attributes", "created_on", "modified_on",
		"next_event_prequeue_start_time", "next_event_start_time", "total_active_users", "new_users_per_minute",
	}
	place := func(f roomField) int {
		if i := slices.Index(order, f.name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(all, func(a, b roomField) int { return cmp.Compare(place(a), place(b)) })
	return all
})

func identityFields() []roomField {
	return []roomField{
		readOnly("id", "It never changes.", Schema{"type": "string"}, func(r *catalog.Room, _ time.Time) any { return r.Settings.ID.String() }),
		readOnly("zone", "The name space that it is in.", Schema{"type": "string"}, func(r *catalog.Room, _ time.Time) any { return r.Zone }),
		single(description(func(r *catalog.Room) *string { return &r.Description })),
		additionalRoutes(),
		{
			name: "cookie_attributes", meaning: "How browsers treat the cookie. Default auto and auto.", allowed: "an object with samesite, secure, partitioned",
			schema: func(u use) Schema { return objectOf(cookieFields, u) },
			read: func(r *reader, v value, into, was *catalog.Room) {
				var old *room.CookieAttributes
				if was != nil {
					old = &was.Settings.Front.Cookie
				}
				r.within("cookie_attributes", v, func() {
					into.Settings.Front.Cookie = decode(r, v, cookieFields, &room.CookieAttributes{}, old)
				})
			},
			show: func(r *catalog.Room, now time.Time) any { return show(&r.Settings.Front.Cookie, cookieFields, now) },
			copy: func(from, into *catalog.Room) { into.Settings.Front.Cookie = from.Settings.Front.Cookie },
			keep: func(was, into *catalog.Room) {
				into.Settings.Front.Cookie.Partitioned = was.Settings.Front.Cookie.Partitioned
			},
		},
		moment("created_on", "When it was made.", func(r *catalog.Room, _ time.Time) time.Time { return r.Created }),
		moment("modified_on", "When anything of it, its events and its rules changed.", func(r *catalog.Room, _ time.Time) time.Time { return r.Modified }),
		moment("next_event_prequeue_start_time", "When the pre-queue of the next event begins; null if there is none.", func(r *catalog.Room, now time.Time) time.Time { return nextEvent(r, now).PrequeueStart }),
		moment("next_event_start_time", "When the next event starts; null if there is none.", func(r *catalog.Room, now time.Time) time.Time { return nextEvent(r, now).Start }),
	}
}

var cookieFields = zeroed(owned(fromTable(room.CookieFields, itself[room.CookieAttributes], room.CookieAttributes{}), "samesite secure"), "samesite", "secure")

func sessionFields() []roomField {
	return []roomField{
		inMinutes("How many minutes a visitor is active after the last request. One that is not whole minutes is shown rounded up. Default 5.", sessionOf),
		inSeconds("The same in seconds. Default 300.", sessionOf),
	}
}

func sessionOf(r *catalog.Room) *time.Duration { return &r.Settings.SessionDuration }

func otherFields() []roomField {
	return []roomField{
		noEffect(single(settings.New("turnstile_mode", "kept, and without effect: visitors are not checked for being human here", settings.ZeroIs(turnstileModes, "invisible"), "",
			func(r *catalog.Room) *string { return &r.Turnstile.Mode })), "off"),
		noEffect(single(settings.New("turnstile_action", "kept, and without effect", settings.ZeroIs(turnstileActions, "log"), "",
			func(r *catalog.Room) *string { return &r.Turnstile.Action })), "log"),
		single(page("custom_page_html", "the waiting page", func(r *catalog.Room) *string { return &r.Settings.Front.CustomPage }).Unless("the built-in one")),
	}
}

// nextEvent returns the next event of a room that starts after now, or nothing.
func nextEvent(r *catalog.Room, now time.Time) (next room.Event) {
	for i := range r.Events {
		if e := &r.Events[i]; !e.Suspended && e.Start.After(now) && (next.Start.IsZero() || e.Start.Before(next.Start)) {
			next = e.Event
		}
	}
	return next
}
