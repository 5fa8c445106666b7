package catalog

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/settings"
)

// What of zones, events and rules merges by itself. The times of an event are one unit, with
// whether it shuffles, which only one with a pre-queue may; so are its two limits, which are
// there both or not at all.

type zoneValue struct {
	CrawlerBypass bool `json:"search_engine_crawler_bypass,omitzero"`
}

// clock is a time of an event, with the offset that an operator gave it in; "" is none.
type clock time.Time

// MarshalText implements encoding.TextMarshaler.
func (c clock) MarshalText() ([]byte, error) {
	if time.Time(c).IsZero() {
		return nil, nil
	}
	return []byte(settings.FormatTime(time.Time(c))), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *clock) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*c = clock{}
		return nil
	}
	t, err := settings.ParseTime(string(text))
	*c = clock(t)
	return err
}

type eventTimes struct {
	Start    *clock `json:"event_start_time"`
	End      *clock `json:"event_end_time"`
	Prequeue *clock `json:"prequeue_start_time"`
	Shuffle  *bool  `json:"shuffle_at_event_start"`
}

type eventLimits struct {
	TotalActiveUsers  **int `json:"total_active_users"`
	NewUsersPerMinute **int `json:"new_users_per_minute"`
}

var eventUnits = units[Event]{
	{unitMade, func(e *Event) any { return &made{&e.Created, &e.thing.file} }, true, true},
	at(unitName, func(e *Event) *string { return &e.Name }),
	at("description", func(e *Event) *string { return &e.Description }),
	together("times", func(e *Event) *eventTimes {
		return &eventTimes{(*clock)(&e.Start), (*clock)(&e.End), (*clock)(&e.PrequeueStart), &e.Shuffle}
	}),
	at("suspended", func(e *Event) *bool { return &e.Suspended }),
	together("limits", func(e *Event) *eventLimits { return &eventLimits{&e.TotalActiveUsers, &e.NewUsersPerMinute} }),
	at("session_duration_ns", func(e *Event) **time.Duration { return &e.SessionDuration }),
	at("queueing_method", func(e *Event) **room.Method { return &e.QueueingMethod }),
	at("disable_session_renewal", func(e *Event) **bool { return &e.DisableSessionRenewal }),
	at(unitPage, func(e *Event) **textRef { return &e.page }),
	at("turnstile_mode", func(e *Event) *string { return &e.Turnstile.Mode }),
	at("turnstile_action", func(e *Event) *string { return &e.Turnstile.Action }),
}

func listedEvents(of crdt.RoomID) *listed[Event] {
	return &listed[Event]{
		us: eventUnits, fresh: func() Event { return Event{} },
		key: func(e *Event) string { return eventKey(of, e.ID) }, at: func(e *Event) *thing { return &e.thing },
		text: func(w *writer, was, is *Event) {
			if is.page = nil; is.CustomPage == nil {
				if was.CustomPage == nil {
					is.page = was.page // which has not arrived, if there is one
				}
				return
			}
			var before string
			var ref textRef
			if was.CustomPage != nil {
				before, ref = *was.CustomPage, *was.page
			}
			ref = w.text(of, eventKey(of, is.ID), before, *is.CustomPage, ref)
			is.page = &ref
		},
	}
}

var ruleUnits = units[Rule]{
	{unitMade, func(r *Rule) any { return &made{&r.Created, &r.thing.file} }, true, true},
	at("expression", func(r *Rule) *string { return &r.Expression }),
	at("description", func(r *Rule) *string { return &r.Description }),
	at("disabled", func(r *Rule) *bool { return &r.Disabled }),
	at("action", func(r *Rule) *room.RuleAction { return &r.Action }),
	at("version", func(r *Rule) *int { return &r.Version }),
	at(unitRank, func(r *Rule) *int64 { return &r.thing.rank }),
}

func listedRules(of crdt.RoomID) *listed[Rule] {
	return &listed[Rule]{
		us: ruleUnits, fresh: func() Rule { return Rule{} },
		key: func(r *Rule) string { return ruleKey(of, r.ID) }, at: func(r *Rule) *thing { return &r.thing },
		text: func(*writer, *Rule, *Rule) {},
	}
}
