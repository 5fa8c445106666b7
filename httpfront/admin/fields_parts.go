package admin

import (
	"math"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

// Fields of events, rules and zones.

type eventField = field[catalog.Event]

func itself[T any](v *T) *T { return v }

// eventFields are those of an event. An override that is null is the room's setting.
var eventFields = []eventField{
	readOnly("id", "It never changes.", Schema{"type": "string"}, func(e *catalog.Event, _ time.Time) any { return e.ID.String() }),
	text("name", "Unique in its room.", nameAllowed, 0, func(e *catalog.Event) *string { return &e.Name }).must(),
	text("description", "For operators. Default none.", "a text of at most 500 characters", 500, func(e *catalog.Event) *string { return &e.Description }),
	moment("event_start_time", "From then on its settings hold.", func(e *catalog.Event) *time.Time { return &e.Start }).must(),
	moment("event_end_time", "From then on the room's own hold again; at least 1 minute after the start.", func(e *catalog.Event) *time.Time { return &e.End }).must(),
	moment("prequeue_start_time", "Who comes between then and the start waits for the start; 5 minutes to 12 hours before it. Default none.", func(e *catalog.Event) *time.Time { return &e.PrequeueStart }),
	truth("shuffle_at_event_start", "With true those of the pre-queue get their places at random. Default false.", func(e *catalog.Event) *bool { return &e.Shuffle }),
	truth("suspended", "With true it does not happen. Default false.", func(e *catalog.Event) *bool { return &e.Suspended }),
	override(whole("total_active_users", "Instead of the room's; with new_users_per_minute, or neither.", 1, math.MaxInt32, itself[int]), func(e *catalog.Event) **int { return &e.TotalActiveUsers }),
	override(whole("new_users_per_minute", "Instead of the room's; with total_active_users, or neither.", 1, math.MaxInt32, itself[int]), func(e *catalog.Event) **int { return &e.NewUsersPerMinute }),
	override(inMinutes("Instead of the room's, in minutes.", itself[time.Duration]), func(e *catalog.Event) **time.Duration { return &e.SessionDuration }),
	override(inSeconds("The same in seconds.", itself[time.Duration]), func(e *catalog.Event) **time.Duration { return &e.SessionDuration }),
	override(truth("disable_session_renewal", "Instead of the room's.", itself[bool]), func(e *catalog.Event) **bool { return &e.DisableSessionRenewal }),
	override(oneOf("queueing_method", "Instead of the room's.", methods, "", itself[room.Method]), func(e *catalog.Event) **room.Method { return &e.QueueingMethod }),
	override(text("custom_page_html", "Instead of the room's, from the pre-queue on.", pageAllowed, 0, itself[string]), func(e *catalog.Event) **string { return &e.CustomPage }),
	inherited(noEffect(oneOf("turnstile_mode", "Kept, and without effect.", turnstileModes, "", func(e *catalog.Event) *string { return &e.Turnstile.Mode }), "off")),
	inherited(noEffect(oneOf("turnstile_action", "Kept, and without effect.", turnstileActions, "", func(e *catalog.Event) *string { return &e.Turnstile.Action }), "log")),
	readOnly("created_on", "When it was made.", Schema{"type": "string", "format": "date-time"}, func(e *catalog.Event, _ time.Time) any { return stampOf(e.Created) }).orNull(),
	readOnly("modified_on", "When it was last changed.", Schema{"type": "string", "format": "date-time"}, func(e *catalog.Event, _ time.Time) any { return stampOf(e.Modified) }).orNull(),
}

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

// actionElsewhere is what the dialect calls room.Bypass.
const actionElsewhere = "bypass_waiting_room"

var ruleFields = []ruleField{
	readOnly("id", "It never changes.", Schema{"type": "string"}, func(r *catalog.Rule, _ time.Time) any { return r.ID.String() }),
	readOnly("version", "One more with each change.", Schema{"type": "string"}, func(r *catalog.Rule, _ time.Time) any { return strconv.Itoa(r.Version) }),
	ruleAction(),
	text("expression", "Which requests it is about.", "an expression of up to 4096 characters, such as starts_with(http.request.uri.path, \"/static/\")", 0,
		func(r *catalog.Rule) *string { return &r.Expression }).must(),
	text("description", "For operators. Default none.", "a text of at most 500 characters", 500, func(r *catalog.Rule) *string { return &r.Description }),
	enabled(),
	readOnly("last_updated", "When it was last changed.", Schema{"type": "string", "format": "date-time"}, func(r *catalog.Rule, _ time.Time) any { return stampOf(r.Modified) }).orNull(),
}

func ruleAction() ruleField {
	f := plain("action", "What becomes of the requests. Default bypass_waiting_room, which may be written bypass.", "one of bypass_waiting_room, bypass",
		Schema{"type": "string", "enum": []any{actionElsewhere, string(room.Bypass)}}, func(r *catalog.Rule) *room.RuleAction { return &r.Action },
		func(f *ruleField, r *reader, v value) (room.RuleAction, bool) {
			read := readWord[catalog.Rule]([]string{actionElsewhere, string(room.Bypass)})
			_, ok := read(f, r, v)
			return room.Bypass, ok
		})
	f.show = func(*catalog.Rule, time.Time) any { return actionElsewhere }
	return f
}

func enabled() ruleField {
	f := truth("enabled", "With false it is as if it were not there. Default true.", func(r *catalog.Rule) *bool { return &r.Disabled })
	read := f.read
	f.read = func(r *reader, v value, into, was *catalog.Rule) {
		v.yes = !v.yes
		read(r, v, into, was)
	}
	f.show = func(r *catalog.Rule, _ time.Time) any { return !r.Disabled }
	return f
}

func newRule() *catalog.Rule { return &catalog.Rule{Rule: room.Rule{Action: room.Bypass}} }

var zoneFields = []field[catalog.Zone]{
	truth("search_engine_crawler_bypass", "Crawlers of search engines pass all rooms of the zone. Default false.", func(z *catalog.Zone) *bool { return &z.SearchEngineCrawlerBypass }),
}

// previewed is the body of a request for a preview.
type previewed struct{ html string }

var previewFields = []field[previewed]{
	text("custom_html", "The page.", pageAllowed, 0, func(p *previewed) *string { return &p.html }).must(),
}
