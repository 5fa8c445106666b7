package room

import "time"

// Action is what a node does with one request.
type Action uint8

const (
	// Wait: the poll counts, the visitor waits. It is the zero value.
	Wait Action = iota
	// TooEarly: the visitor asked before its refresh interval was over. Nothing
	// is counted and LastPoll stays as it was.
	TooEarly
	// Enter: the lease is not past; no place is taken.
	Enter
	// Ask: the lease ended a short while ago as this pass has it. Only the
	// anchor knows whether it was extended since; ask before refusing.
	Ask
	// Apply: a place is reserved; take one of AllowWaiting, else wait.
	Apply
	// Compete: take one of AllowNew if one is left, else one of AllowAnywhere, else
	// wait.
	Compete
	// Refuse: nobody is let in and nobody queues. The visitor gets no place, so no
	// pass is set.
	Refuse
)

// String returns the name of the action in lower case.
func (a Action) String() string {
	names := [...]string{"wait", "too early", "enter", "ask", "apply", "compete", "refuse"}
	if int(a) < len(names) {
		return names[a]
	}
	return "unknown"
}

// Decision is the answer to one request.
type Decision struct {
	Action Action
	New    bool // the visitor arrives now; whatever place the pass held is gone
}

// futureTolerance is how far ahead a time in a pass may be: another node, with
// a clock of its own, wrote it.
const futureTolerance = 2 * time.Second

// askSpan is how many sessions after its end a lease is worth asking about.
const askSpan = 2

// tolerance is how much before its time a poll still counts. Browsers round
// their timers, and the way back is not always equally long.
func tolerance(refresh time.Duration) time.Duration { return min(2*time.Second, refresh/4) }

// due returns after how much of the interval that a visitor was told a poll
// counts. Under Random that is all of it, as each poll is a draw: times in passes
// are rounded down to milliseconds, which is all the rounding that clocks bring.
func (v *View) due(refresh time.Duration) time.Duration {
	if v.Settings.QueueingMethod == Random {
		return refresh
	}
	return refresh - tolerance(refresh)
}

// Decide says what to do with a request of vis at now. It allocates nothing.
func (v *View) Decide(vis Visitor, now time.Time) Decision {
	if vis.AcceptedAt.IsZero() || vis.LeaseEnd.IsZero() {
		return v.decideWaiting(vis, now)
	}
	past := now.Sub(vis.LeaseEnd)
	switch {
	case past <= 0:
		return Decision{Action: Enter}
	case past < askSpan*v.Settings.SessionDuration && !v.Settings.DisableSessionRenewal:
		return Decision{Action: Ask}
	}
	return v.decideNew(now)
}

func (v *View) decideNew(now time.Time) Decision {
	d := Decision{Action: Wait, New: true}
	switch {
	case v.Event.Prequeueing: // the start of the event is waited for
	case v.Settings.QueueingMethod == Reject:
		d.Action = Refuse
	case v.OpenToNew:
		d.Action = v.contest(now)
	}
	return d
}

// IsKept reports whether the place in line is kept of somebody who waits. Who has none is new.
func (s *Settings) IsKept(vis Visitor, now time.Time) bool {
	age := vis.age(now)
	return !vis.Arrival.IsZero() && vis.Arrival.Sub(now) <= futureTolerance &&
		age >= -futureTolerance && age <= s.refreshOf(vis)+s.PlaceKept
}

// IsCounted reports whether somebody who waits is counted at a time as of the last poll.
func (s *Settings) IsCounted(vis Visitor, at time.Time) bool {
	return !vis.LastPoll.IsZero() && vis.age(at) <= absentAfter(s.refreshOf(vis))
}

// age is for how long somebody who waits has not asked.
func (vis Visitor) age(now time.Time) time.Duration {
	if vis.LastPoll.IsZero() {
		return now.Sub(vis.Arrival)
	}
	return now.Sub(vis.LastPoll)
}

// refreshOf is the interval in which somebody who waits was told to ask.
func (s *Settings) refreshOf(vis Visitor) time.Duration {
	if vis.Refresh > 0 {
		return vis.Refresh
	}
	return s.RefreshInterval
}

func (v *View) decideWaiting(vis Visitor, now time.Time) Decision {
	if !v.Settings.IsKept(vis, now) {
		return v.decideNew(now)
	}
	age, refresh := max(0, vis.age(now)), v.Settings.refreshOf(vis)
	held := v.Event.Prequeueing && !vis.Arrival.Before(v.Event.PrequeueStart)
	switch {
	case age < v.due(refresh) && (v.AllowNew < Unlimited || held):
		return Decision{Action: TooEarly}
	case held:
		return Decision{Action: Wait}
	}
	place := vis.Place
	if place.IsZero() {
		place = vis.Arrival
	}
	// Nobody reserved a place for who was not counted. From this poll on the
	// visitor is, in the old place. Where rights are the limit none has to be
	// reserved, and whoever asks seldom would meet a place that is only by luck: who
	// is there, and came before those who have their turn, has it, too.
	mayApply := v.Settings.Policy == Escrow || age <= absentAfter(refresh)
	switch {
	case mayApply && place.Before(v.Cursor) && v.AllowWaiting > 0 && !v.Over(now):
		return Decision{Action: Apply}
	case v.OpenToNew || place.Before(v.Edge):
		// Where slots are left for new visitors, a waiting one whose poll has not
		// been counted yet may have one of those: it must not fare worse than
		// somebody new.
		return Decision{Action: v.contest(now)}
	}
	return Decision{Action: Wait}
}

// absentAfter is how long after the last poll a visitor is not counted any more.
func absentAfter(refresh time.Duration) time.Duration { return refresh * absentAfterHalves / 2 }

// contest returns what becomes of somebody who has no place reserved but may
// have one of the others.
func (v *View) contest(now time.Time) Action {
	if v.AllowNew <= 0 && v.AllowAnywhere <= 0 || v.Over(now) {
		return Wait
	}
	return Compete
}
