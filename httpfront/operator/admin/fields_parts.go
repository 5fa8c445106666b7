package admin

import (
	"slices"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

// Fields of events, rules and zones.

type eventField = field[catalog.Event]

func itself[T any](v *T) *T { return v }

// eventFields are those of an event. An override that is null is the room's setting.
var eventFields = slices.Concat(
	[]eventField{
		readOnly("id", "It never changes.", Schema{"type": "string"}, func(e *catalog.Event, _ time.Time) any { return e.ID.String() }),
		text("description", "For operators. Default none.", "a text of at most 500 characters", 500, func(e *catalog.Event) *string { return &e.Description }),
	},
	besidesSession(fromTable(room.EventFields, func(e *catalog.Event) *room.Event { return &e.Event }, room.Event{})),
	[]eventField{
		override(inMinutes("Instead of the room's, in minutes.", itself[time.Duration]), func(e *catalog.Event) **time.Duration { return &e.SessionDuration }),
		override(inSeconds("The same in seconds.", itself[time.Duration]), func(e *catalog.Event) **time.Duration { return &e.SessionDuration }),
		override(text("custom_page_html", "Instead of the room's, from the pre-queue on.", pageAllowed, 0, itself[string]), func(e *catalog.Event) **string { return &e.CustomPage }),
		inherited(noEffect(oneOf("turnstile_mode", "Kept, and without effect.", turnstileModes, "", func(e *catalog.Event) *string { return &e.Turnstile.Mode }), "off")),
		inherited(noEffect(oneOf("turnstile_action", "Kept, and without effect.", turnstileActions, "", func(e *catalog.Event) *string { return &e.Turnstile.Action }), "log")),
		readOnly("created_on", "When it was made.", Schema{"type": "string", "format": "date-time"}, func(e *catalog.Event, _ time.Time) any { return stampOf(e.Created) }).orNull(),
		readOnly("modified_on", "When it was last changed.", Schema{"type": "string", "format": "date-time"}, func(e *catalog.Event, _ time.Time) any { return stampOf(e.Modified) }).orNull(),
	})

// orNull returns the field as one that may be null.
func (f field[T]) orNull() field[T] {
	f.nullable = true
	return f
}

// inherited shows the empty text as null.
func inherited(f eventField) eventField {
	show := f.show
	f.nullable = true
	f.show = func(e *catalog.Event, now time.Time) any {
		if v := show(e, now); v != "" {
			return v
		}
		return nil
	}
	return f
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
	e.Turnstile.Mode = firstOf(e.Turnstile.Mode, r.Turnstile.Mode, "invisible")
	e.Turnstile.Action = firstOf(e.Turnstile.Action, r.Turnstile.Action, "log")
	return e
}

func inherit[T any](own **T, of T) {
	if *own == nil {
		*own = &of
	}
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

type ruleField = field[catalog.Rule]

var ruleFields = slices.Concat(
	[]ruleField{
		readOnly("id", "It never changes.", Schema{"type": "string"}, func(r *catalog.Rule, _ time.Time) any { return r.ID.String() }),
		readOnly("version", "One more with each change.", Schema{"type": "string"}, func(r *catalog.Rule, _ time.Time) any { return strconv.Itoa(r.Version) }),
	},
	fromTable(room.RuleFields, func(r *catalog.Rule) *room.Rule { return &r.Rule }, newRule().Rule),
	[]ruleField{
		readOnly("last_updated", "When it was last changed.", Schema{"type": "string", "format": "date-time"}, func(r *catalog.Rule, _ time.Time) any { return stampOf(r.Modified) }).orNull(),
	})

func newRule() *catalog.Rule { return &catalog.Rule{Rule: room.Rule{Action: room.Bypass}} }

var zoneFields = []field[catalog.Zone]{
	truth("search_engine_crawler_bypass", "Crawlers of search engines pass all rooms of the zone. Default false.", func(z *catalog.Zone) *bool { return &z.SearchEngineCrawlerBypass }),
}

// previewed is the body of a request for a preview.
type previewed struct{ html string }

var previewFields = []field[previewed]{
	text("custom_html", "The page.", pageAllowed, 0, func(p *previewed) *string { return &p.html }).must(),
}
