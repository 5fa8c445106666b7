package catalog

import (
	"time"

	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/settings"
)

// Zones, events and rules as they are written; see groups.go for what holds of them.

type zoneValue struct {
	CrawlerBypass bool `json:"search_engine_crawler_bypass,omitzero"`
}

// clock is a time of an event, with the offset that an operator gave it in.
type clock time.Time

func (c clock) IsZero() bool                 { return time.Time(c).IsZero() }
func (c clock) MarshalText() ([]byte, error) { return []byte(settings.FormatTime(time.Time(c))), nil }

func (c *clock) UnmarshalText(text []byte) error {
	t, err := settings.ParseTime(string(text))
	*c = clock(t)
	return err
}

type eventValue struct {
	Name        string    `json:"name"`
	Description string    `json:"description,omitzero"`
	Created     time.Time `json:"created"`
	Start       clock     `json:"event_start_time"`
	End         clock     `json:"event_end_time"`
	Prequeue    clock     `json:"prequeue_start_time,omitzero"`
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
		Start: clock(e.Start), End: clock(e.End), Prequeue: clock(e.PrequeueStart), Shuffle: e.Shuffle, Suspended: e.Suspended,
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
			Name: v.Name, Start: time.Time(v.Start), End: time.Time(v.End), PrequeueStart: time.Time(v.Prequeue), Shuffle: v.Shuffle, Suspended: v.Suspended,
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
