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
func tolerance(refresh time.Duration) time.Duration {
	return min(2*time.Second, refresh/4)
}

// Decide says what to do with a request of vis at now. It allocates nothing.
func (v *View) Decide(vis Visitor, now time.Time) Decision {
	if !vis.AcceptedAt.IsZero() && !vis.LeaseEnd.IsZero() {
		past := now.Sub(vis.LeaseEnd)
		switch {
		case past <= 0:
			return Decision{Action: Enter}
		case past < askSpan*v.Settings.SessionDuration:
			return Decision{Action: Ask}
		}
		return v.decideNew()
	}
	return v.decideWaiting(vis, now)
}

func (v *View) decideNew() Decision {
	d := Decision{Action: Wait, New: true}
	if v.OpenToNew && v.AllowNew > 0 {
		d.Action = Compete
	}
	return d
}

func (v *View) decideWaiting(vis Visitor, now time.Time) Decision {
	last := vis.LastPoll
	if last.IsZero() {
		last = vis.Arrival
	}
	age := now.Sub(last)
	if vis.Arrival.IsZero() || age < -futureTolerance || vis.Arrival.Sub(now) > futureTolerance {
		return v.decideNew()
	}
	age = max(0, age)
	refresh, early := vis.Refresh, time.Duration(0)
	if refresh <= 0 {
		refresh, early = v.Settings.RefreshInterval, v.refreshTolerance
	} else {
		early = tolerance(refresh)
	}
	switch {
	case age > refresh+v.Settings.PlaceKept:
		return v.decideNew()
	case age < refresh-early && v.AllowNew < Unlimited:
		return Decision{Action: TooEarly}
	case age > absentAfter(refresh):
		// Nobody reserved a place for who was not counted. From this poll on the
		// visitor is, in the old place.
		return Decision{Action: v.contest(vis.Arrival)}
	}
	return Decision{Action: v.standing(vis.Arrival)}
}

// absentAfter is how long after the last poll a visitor is not counted any more.
func absentAfter(refresh time.Duration) time.Duration { return refresh * absentAfterHalves / 2 }

// standing says which allowance a waiting visitor draws on, if any.
func (v *View) standing(arrival time.Time) Action {
	if arrival.Before(v.Cursor) && v.AllowWaiting > 0 {
		return Apply
	}
	return v.contest(arrival)
}

// contest says whether a waiting visitor may compete. Where slots are left for
// new visitors, a waiting one whose poll has not been counted yet may have one of
// those: it must not fare worse than somebody new.
func (v *View) contest(arrival time.Time) Action {
	if (v.OpenToNew || arrival.Before(v.Edge)) && v.AllowNew > 0 {
		return Compete
	}
	return Wait
}
