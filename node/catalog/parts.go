package catalog

import (
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// Zones, events and rules as they are written; see groups.go for what holds of them.

type zoneValue struct {
	CrawlerBypass bool `json:"search_engine_crawler_bypass,omitzero"`
}

type eventValue struct {
	Name        string    `json:"name"`
	Description string    `json:"description,omitzero"`
	Created     time.Time `json:"created"`
	Start       time.Time `json:"event_start_time"`
	End         time.Time `json:"event_end_time"`
	Prequeue    time.Time `json:"prequeue_start_time,omitzero"`
	Shuffle     bool      `json:"shuffle_at_event_start,omitzero"`
	Suspended   bool      `json:"suspended,omitzero"`

	TotalActiveUsers  *int           `json:"total_active_users,omitempty"`
	NewUsersPerMinute *int           `json:"new_users_per_minute,omitempty"`
	Session           *time.Duration `json:"session_duration_ns,omitempty"`
	Method            *room.Method   `json:"queueing_method,omitempty"`
	DisableRenewal    *bool          `json:"disable_session_renewal,omitempty"`
	Page              *textRef       `json:"page,omitempty"`
	TurnstileMode     string         `json:"turnstile_mode,omitzero"`
	TurnstileAction   string         `json:"turnstile_action,omitzero"`
}

func valueOfEvent(e *Event) *eventValue {
	v := &eventValue{
		Name: e.Name, Description: e.Description, Created: e.Created.UTC(),
		Start: e.Start.UTC(), End: e.End.UTC(), Prequeue: e.PrequeueStart.UTC(), Shuffle: e.Shuffle, Suspended: e.Suspended,
		TotalActiveUsers: e.TotalActiveUsers, NewUsersPerMinute: e.NewUsersPerMinute, Session: e.SessionDuration,
		Method: e.QueueingMethod, DisableRenewal: e.DisableSessionRenewal,
		TurnstileMode: e.Turnstile.Mode, TurnstileAction: e.Turnstile.Action,
	}
	if e.CustomPage != nil {
		ref := refOf(*e.CustomPage)
		v.Page = &ref
	}
	return v
}

// event returns the event without its page.
func (v *eventValue) event(id ID) Event {
	return Event{
		ID: id, Description: v.Description, Created: v.Created, Turnstile: Turnstile{v.TurnstileMode, v.TurnstileAction},
		Event: room.Event{
			Name: v.Name, Start: v.Start, End: v.End, PrequeueStart: v.Prequeue, Shuffle: v.Shuffle, Suspended: v.Suspended,
			TotalActiveUsers: v.TotalActiveUsers, NewUsersPerMinute: v.NewUsersPerMinute, SessionDuration: v.Session,
			QueueingMethod: v.Method, DisableSessionRenewal: v.DisableRenewal,
		},
	}
}

type ruleValue struct {
	Expression  string          `json:"expression"`
	Description string          `json:"description,omitzero"`
	Disabled    bool            `json:"disabled,omitzero"`
	Action      room.RuleAction `json:"action"`
	Version     int             `json:"version"`
	Created     time.Time       `json:"created"`
}

func valueOfRule(r *Rule) *ruleValue {
	return &ruleValue{r.Expression, r.Description, r.Disabled, r.Action, r.Version, r.Created.UTC()}
}

func (v *ruleValue) rule(id ID) Rule {
	return Rule{
		ID: id, Version: v.Version, Created: v.Created,
		Rule: room.Rule{Expression: v.Expression, Description: v.Description, Disabled: v.Disabled, Action: v.Action},
	}
}
