package admin

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/settings"
)

// Fields of events, rules and zones.

type eventField = field[catalog.Event]

// eventFields are those of an event. An override that is null is the room's setting.
var eventFields = zeroed(slices.Concat(
	[]eventField{
		readOnly("id", "It never changes.", Schema{"type": "string"}, func(e *catalog.Event, _ time.Time) any { return e.ID.String() }),
		single(description(func(e *catalog.Event) *string { return &e.Description })),
	},
	besidesSession(fromTable(room.EventFields, func(e *catalog.Event) *room.Event { return &e.Event }, room.Event{})),
	[]eventField{
		override(inMinutes("Instead of the room's, in minutes.", itself[time.Duration]), func(e *catalog.Event) **time.Duration { return &e.SessionDuration }),
		override(inSeconds("The same in seconds.", itself[time.Duration]), func(e *catalog.Event) **time.Duration { return &e.SessionDuration }),
		override(single(page("custom_page_html", "instead of the room's, from the pre-queue on", itself[string]).Must()), func(e *catalog.Event) **string { return &e.CustomPage }),
		noEffect(single(settings.New("turnstile_mode", "kept, and without effect", inherited(turnstileModes), "", func(e *catalog.Event) *string { return &e.Turnstile.Mode })), "off"),
		noEffect(single(settings.New("turnstile_action", "kept, and without effect", inherited(turnstileActions), "", func(e *catalog.Event) *string { return &e.Turnstile.Action })), "log"),
		moment("created_on", "When it was made.", func(e *catalog.Event, _ time.Time) time.Time { return e.Created }),
		moment("modified_on", "When it was last changed.", func(e *catalog.Event, _ time.Time) time.Time { return e.Modified }),
	}), "event_start_time", "event_end_time", sessionMinutes)

// inherited is a kind of words that are left out where the room's holds.
func inherited(words settings.Kind[string]) settings.Kind[string] {
	words.Null = true
	return words
}

// details returns an event with what holds while it is under way: what it does not
// override is the room's.
func details(e catalog.Event, r *catalog.Room) catalog.Event {
	s := r.Settings // at the time of the event
	s.Events = nil
	inherit(&e.TotalActiveUsers, s.TotalActiveUsers)
	inherit(&e.NewUsersPerMinute, s.NewUsersPerMinute)
	inherit(&e.SessionDuration, s.SessionDuration)
	inherit(&e.DisableSessionRenewal, s.DisableSessionRenewal)
	inherit(&e.QueueingMethod, s.QueueingMethod)
	inherit(&e.CustomPage, s.Front.CustomPage)
	e.Turnstile.Mode = cmp.Or(e.Turnstile.Mode, r.Turnstile.Mode, "invisible")
	e.Turnstile.Action = cmp.Or(e.Turnstile.Action, r.Turnstile.Action, "log")
	return e
}

func inherit[T any](own **T, of T) {
	if *own == nil {
		*own = &of
	}
}

type ruleField = field[catalog.Rule]

var ruleFields = slices.Concat(
	[]ruleField{
		readOnly("id", "It never changes.", Schema{"type": "string"}, func(r *catalog.Rule, _ time.Time) any { return r.ID.String() }),
		readOnly("version", "One more with each change.", Schema{"type": "string"}, func(r *catalog.Rule, _ time.Time) any { return strconv.Itoa(r.Version) }),
	},
	zeroed(fromTable(room.RuleFields, func(r *catalog.Rule) *room.Rule { return &r.Rule }, newRule().Rule), "action"),
	[]ruleField{
		moment("last_updated", "When it was last changed.", func(r *catalog.Rule, _ time.Time) time.Time { return r.Modified }),
	})

func newRule() *catalog.Rule { return &catalog.Rule{Rule: room.Rule{Action: room.Bypass}} }

var zoneFields = []field[catalog.Zone]{
	single(settings.New("search_engine_crawler_bypass", "crawlers of search engines pass all rooms of the zone", settings.Truth(), false, func(z *catalog.Zone) *bool { return &z.SearchEngineCrawlerBypass })),
}

// previewed is the body of a request for a preview.
type previewed struct{ html string }

var previewFields = []field[previewed]{
	single(page("custom_html", "the page", func(p *previewed) *string { return &p.html }).Must()),
}
