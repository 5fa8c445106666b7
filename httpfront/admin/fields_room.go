package admin

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropeline/ropeline/httpfront/lang"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

// newRoom is a room with all its defaults; the two limits, the name and the host have none.
func newRoom() *catalog.Room {
	r := &catalog.Room{Settings: room.Settings{}.WithDefaults()}
	f := &r.Settings.Front
	f.NoJSON = true // as the dialect has it
	f.Binding = room.Binding{IPv4Prefix: room.DefaultIPv4Prefix, IPv6Prefix: room.DefaultIPv6Prefix}
	f.NewVisitors = room.NewVisitors{PerAddress: 1000, All: 600_000}
	f.Sharing = room.Sharing{Action: room.SharedLog, Addresses: 4}
	return r
}

type roomField = field[catalog.Room]

var (
	methods  = []room.Method{room.FIFO, room.Random, room.Passthrough, room.Reject}
	policies = []room.Policy{room.Escrow, room.Even, room.Curve, room.Counter, room.Open}

	turnstileModes   = []string{"off", "invisible", "visible_non_interactive", "visible_managed"}
	turnstileActions = []string{"log", "infinite_queue"}
)

const (
	nameAllowed = "1 to 64 letters, digits, '-', '_' or '.'"
	hostAllowed = `a host name without scheme, port or wildcard, such as tickets.example.com, in ASCII (xn--bcher-kva.example); "" for every host`
	pathAllowed = `a path that begins with "/", of at most 2048 bytes, without query or fragment, backslashes, ";", encoded slashes, and "." or ".." as a segment`
	pageAllowed = "a Mustache template of at most 1048576 bytes; \"\" for the built-in page"
)

// roomFields are the fields of a room, in the order in which they are shown.
var roomFields = sync.OnceValue(func() []roomField {
	return slices.Concat(identityFields(), limitFields(), queueFields(), lookFields(), ownFields())
})

func identityFields() []roomField {
	return []roomField{
		readOnly("id", "It never changes.", Schema{"type": "string"}, func(r *catalog.Room, _ time.Time) any { return r.Settings.ID.String() }),
		readOnly("zone", "The name space that it is in.", Schema{"type": "string"}, func(r *catalog.Room, _ time.Time) any { return r.Zone }),
		text("name", "Unique in its zone.", nameAllowed, 0, func(r *catalog.Room) *string { return &r.Settings.Name }).must(),
		text("description", "For operators. Default none.", "a text of at most 500 characters", 500, func(r *catalog.Room) *string { return &r.Description }),
		spelled("host", `The exact host of requests; "" for every host.`, hostAllowed, normalHost, func(r *catalog.Room) *string { return &r.Settings.Host }).must(),
		spelled("path", "This path and all below it; of several rooms the longest path counts. Default /.", pathAllowed, normalPath, func(r *catalog.Room) *string { return &r.Settings.Path }),
		additionalRoutes(),
		spelled("cookie_suffix", "Appended to the name of the cookie after a _; rooms that share a host need different ones. Default none.",
			`up to 64 letters, digits, '-' or '_'; "" for none`, isSuffix, func(r *catalog.Room) *string { return &r.Settings.CookieSuffix }),
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
		readOnly("created_on", "When it was made.", Schema{"type": "string", "format": "date-time"}, func(r *catalog.Room, _ time.Time) any { return stampOf(r.Created) }).orNull(),
		readOnly("modified_on", "When anything of it, its events and its rules changed.", Schema{"type": "string", "format": "date-time"},
			func(r *catalog.Room, _ time.Time) any { return stampOf(r.Modified) }).orNull(),
		readOnly("next_event_prequeue_start_time", "When the pre-queue of the next event begins; null if there is none.", Schema{"type": "string", "format": "date-time"},
			func(r *catalog.Room, now time.Time) any { return stampOf(nextEvent(r, now).PrequeueStart) }).orNull(),
		readOnly("next_event_start_time", "When the next event starts; null if there is none.", Schema{"type": "string", "format": "date-time"},
			func(r *catalog.Room, now time.Time) any { return stampOf(nextEvent(r, now).Start) }).orNull(),
	}
}

var cookieFields = []field[room.CookieAttributes]{
	oneOf("samesite", "In which requests that other sites bring about it is sent. auto: none where it is Secure, else lax.",
		[]room.SameSite{room.SameSiteAuto, room.SameSiteLax, room.SameSiteNone, room.SameSiteStrict}, room.SameSiteAuto, func(a *room.CookieAttributes) *room.SameSite { return &a.SameSite }),
	oneOf("secure", "Whether it travels over TLS only. auto: if the visitor's side is TLS.",
		[]room.Secure{room.SecureAuto, room.SecureAlways, room.SecureNever}, room.SecureAuto, func(a *room.CookieAttributes) *room.Secure { return &a.Secure }),
	truth("partitioned", "Whether browsers keep one for each site that shows this one in a frame. Default false.", func(a *room.CookieAttributes) *bool { return &a.Partitioned }).own(),
}

func limitFields() []roomField {
	return []roomField{
		whole("total_active_users", "Visitors on the site at one time.", 1, math.MaxInt32, func(r *catalog.Room) *int { return &r.Settings.TotalActiveUsers }).must(),
		whole("new_users_per_minute", "Visitors let in within a minute.", 1, math.MaxInt32, func(r *catalog.Room) *int { return &r.Settings.NewUsersPerMinute }).must(),
		inMinutes("How many minutes a visitor is active after the last request. One that is not whole minutes is shown rounded up. Default 5.", sessionOf),
		inSeconds("The same in seconds. Default 300.", sessionOf),
		truth("disable_session_renewal", "With true a session ends session_duration after it began. Default false.", func(r *catalog.Room) *bool { return &r.Settings.DisableSessionRenewal }),
	}
}

func sessionOf(r *catalog.Room) *time.Duration { return &r.Settings.SessionDuration }

func queueFields() []roomField {
	return []roomField{
		oneOf("queueing_method", "Who is let in next. Default fifo.", methods, room.FIFO, func(r *catalog.Room) *room.Method { return &r.Settings.QueueingMethod }),
		truth("queue_all", "With true nobody is let in; who is on the site stays. Default false.", func(r *catalog.Room) *bool { return &r.Settings.QueueAll }),
		truth("suspended", "With true all requests go to the site, uncounted, as if there were no room. Default false.", func(r *catalog.Room) *bool { return &r.Settings.Suspended }),
		statusCode(),
		words("enabled_origin_commands", "What the site may tell the room in its answers. Default none.", "a list of revoke", Schema{"type": "string", "enum": []any{"revoke"}}, 1, nil,
			func(r *catalog.Room) *[]room.OriginCommand { return &r.Settings.EnabledOriginCommands },
			func(s string) (room.OriginCommand, bool) { return room.OriginCommand(s), s == string(room.Revoke) },
			func(c room.OriginCommand) string { return string(c) }),
		noEffect(oneOf("turnstile_mode", "Kept, and without effect: visitors are not checked for being human here. Default invisible.", turnstileModes, "invisible",
			func(r *catalog.Room) *string { return &r.Turnstile.Mode }), "off"),
		noEffect(oneOf("turnstile_action", "Kept, and without effect. Default log.", turnstileActions, "log",
			func(r *catalog.Room) *string { return &r.Turnstile.Action }), "log"),
	}
}

func lookFields() []roomField {
	return []roomField{
		inverse(truth("json_response_enabled", "Whether programs get JSON. With false the built-in page loads itself again instead of bringing itself up to date. Default false.",
			func(r *catalog.Room) *bool { return &r.Settings.Front.NoJSON })),
		text("custom_page_html", "The waiting page. Default the built-in one.", pageAllowed, 0, func(r *catalog.Room) *string { return &r.Settings.Front.CustomPage }),
		oneOf("default_template_language", "The language of visitors who ask for none that there is. Default en-US.", languages(), string(lang.English),
			func(r *catalog.Room) *string { return &r.Settings.Front.Language }),
	}
}

func languages() (tags []string) {
	for _, l := range lang.All() {
		tags = append(tags, l.Tag())
	}
	return tags
}

func normalHost(s string) (string, bool) {
	if s == "" {
		return s, true
	}
	return room.NormalHost(s)
}

func normalPath(s string) (string, bool) {
	if s == "" {
		return "/", true // as SDKs say nothing
	}
	path, err := room.RoutePath(s)
	return path, err == nil
}

func isSuffix(s string) (string, bool) {
	rest := strings.Trim(s, "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	return s, rest == "" && len(s) <= 64
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
