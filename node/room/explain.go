package room

import (
	"fmt"
	"time"
)

// Explanation says why a visitor is let in, or is not: the answer of Decide with the
// questions that led to it, in the order in which they were asked, and the figures that
// answered them.
type Explanation struct {
	At       time.Time
	Decision Decision
	Reason   Reason
	Steps    []Step // the last one decided
	Place    *Place // of somebody who waits; nil: a new visitor, or one who is inside
}

// Reason names what decided. Its values are stable: programs may go by them.
type Reason string

// Values of Reason.
const (
	ReasonInside       Reason = "inside"        // the session goes on
	ReasonAskAnchor    Reason = "ask_anchor"    // the session's end is past; its anchor knows whether it was extended
	ReasonPrequeue     Reason = "prequeue"      // the start of an event is waited for
	ReasonReject       Reason = "reject"        // nobody is let in and nobody queues
	ReasonTooEarly     Reason = "too_early"     // asked before the interval that was told was over
	ReasonReserved     Reason = "reserved"      // the turn has come
	ReasonOpen         Reason = "open"          // places are left that nobody who waits has a claim to
	ReasonEdge         Reason = "edge"          // the head of the line is here, and places are left beside those that are reserved
	ReasonNotYet       Reason = "not_yet"       // others came before
	ReasonAbsent       Reason = "absent"        // asked so late that no place was reserved
	ReasonNoPlace      Reason = "no_place"      // none is free
	ReasonNodeHasNone  Reason = "node_has_none" // some are free, and none of them is this node's at the moment
	ReasonEventChanges Reason = "event_changes" // an event changes what holds at this very moment
)

// Step is one question of a decision, and its answer.
type Step struct {
	Question string
	Yes      bool
	Because  string // the figures
}

// Place is where somebody stands who waits.
type Place struct {
	At       time.Time // in the order of the queue
	Position int       // 1 is next; 0 is unknown, or there is no order
	Ahead    int
	Reserved bool // before the cursor
	Minutes  int  // the estimate; 0: not known
}

// Explain says why Decide answers as it does.
func Explain(v *View, vis Visitor, now time.Time) Explanation {
	x := explaining{v: v, now: now, e: Explanation{At: now, Decision: v.Decide(vis, now)}}
	switch {
	case !vis.AcceptedAt.IsZero() && !vis.LeaseEnd.IsZero():
		x.session(vis)
	case x.knows(vis):
		x.waiting(vis)
	default:
		x.newcomer()
	}
	return x.e
}

type explaining struct {
	v   *View
	now time.Time
	e   Explanation
}

// ask notes a question and its answer, which it returns.
func (x *explaining) ask(question string, yes bool, because string, args ...any) bool {
	x.e.Steps = append(x.e.Steps, Step{question, yes, fmt.Sprintf(because, args...)})
	return yes
}

func (x *explaining) session(vis Visitor) {
	s, past := x.v.Settings, x.now.Sub(vis.LeaseEnd)
	if x.ask("does the session go on, as the pass has it?", past <= 0, "it %s at %s", ends(past), exactly(vis.LeaseEnd)) {
		x.e.Reason = ReasonInside
		return
	}
	if s.DisableSessionRenewal {
		x.ask("may it have been extended since?", false, "sessions of this room are not renewed")
	} else if x.ask("may it have been extended since?", past < askSpan*s.SessionDuration, "it ended %v ago, and is asked about for %v", brief(past), askSpan*s.SessionDuration) {
		x.e.Reason = ReasonAskAnchor
		return
	}
	x.newcomer()
}

func ends(past time.Duration) string {
	if past <= 0 {
		return "ends"
	}
	return "ended"
}

// knows reports whether a pass that waits can be believed and has not been left alone for
// too long.
func (x *explaining) knows(vis Visitor) bool {
	if vis.Arrival.IsZero() {
		return x.ask("is there a pass that waits?", false, "the visitor is new")
	}
	last, refresh := vis.lastPoll(), x.v.interval(&vis)
	age := x.now.Sub(last)
	if !x.ask("is the pass from the past?", age >= -futureTolerance && vis.Arrival.Sub(x.now) <= futureTolerance, "it was last shown at %s and is from %s", exactly(last), exactly(vis.Arrival)) {
		return false
	}
	kept := refresh + x.v.Settings.PlaceKept
	return x.ask("is the place still kept?", max(0, age) <= kept, "the visitor asked %v ago, and places are kept for %v", brief(max(0, age)), kept)
}

func (x *explaining) newcomer() {
	v := x.v
	switch {
	case x.ask("does a pre-queue run?", v.Event.Prequeueing, "%s", x.event()):
		x.e.Reason = ReasonPrequeue
	case x.ask("does the room reject everybody?", v.Settings.QueueingMethod == Reject, "its queueing-method is %s", v.Settings.QueueingMethod):
		x.e.Reason = ReasonReject
	case !x.ask("are there places beyond those of all who wait?", v.OpenToNew, "%s", x.slots()):
		x.e.Reason = ReasonNoPlace
	default:
		x.contest(ReasonOpen, ReasonNodeHasNone)
	}
}

func (x *explaining) waiting(vis Visitor) {
	v := x.v
	refresh, age := v.interval(&vis), max(0, x.now.Sub(vis.lastPoll()))
	place := vis.place()
	x.stand(place)
	held := v.Event.Prequeueing && !vis.Arrival.Before(v.Event.PrequeueStart)
	if early := age < v.due(refresh) && (v.AllowNew < Unlimited || held); x.ask("did the visitor ask too early?", early, "%v after the last time that counted, and told to come after %v", brief(age), refresh) {
		x.e.Reason = ReasonTooEarly
		return
	}
	if x.ask("does the visitor wait for the start of an event?", held, "%s", x.event()) {
		x.e.Reason = ReasonPrequeue
		return
	}
	turn := place.Before(v.Cursor)
	present := v.Settings.Policy == Escrow || age <= absentAfter(refresh)
	if x.ask("has the turn come?", turn, "the place is %s and the cursor stands at %s", exactly(place), exactly(v.Cursor)) && x.present(present, age, refresh) {
		mine := v.AllowWaiting > 0
		if x.ask("has this node a place for whoever's turn it is?", mine, "it has %s", allowance(v.AllowWaiting)) && !x.over() {
			x.e.Reason = ReasonReserved
			return
		}
	}
	switch {
	case x.ask("are there places beyond those that are reserved?", v.OpenToNew || place.Before(v.Edge), "%s; whoever came before %s may try", x.slots(), exactly(v.Edge)):
		won, lost := ReasonEdge, ReasonNodeHasNone
		if v.OpenToNew {
			won = ReasonOpen
		}
		if turn && !present {
			lost = ReasonAbsent
		}
		x.contest(won, lost)
	case v.Slots > 0:
		x.e.Reason = ReasonNotYet
	default:
		x.e.Reason = ReasonNoPlace
	}
}

// stand notes where somebody stands who waits.
func (x *explaining) stand(place time.Time) {
	e, _ := x.v.Estimate(place, Shown{})
	x.e.Place = &Place{At: place, Position: e.Position, Ahead: e.Ahead, Reserved: place.Before(x.v.Cursor), Minutes: e.Minutes}
}

func (x *explaining) present(present bool, age, refresh time.Duration) bool {
	if x.v.Settings.Policy == Escrow {
		return true
	}
	return x.ask("was the visitor there to have a place reserved?", present, "%v after the last time, and taken to be away after %v", brief(age), absentAfter(refresh))
}

// contest tells what becomes of somebody who may have a place that is reserved for nobody.
func (x *explaining) contest(won, lost Reason) {
	v := x.v
	mine := v.AllowNew > 0 || v.AllowAnywhere > 0
	switch {
	case !x.ask("has this node one of them?", mine, "it has %s of its own, and %s that no site has a claim to", allowance(v.AllowNew), allowance(v.AllowAnywhere)):
		x.e.Reason = lost
	case x.over():
		x.e.Reason = ReasonEventChanges
	default:
		x.e.Reason = won
	}
}

func (x *explaining) over() bool {
	return x.v.Over(x.now) && x.ask("does an event change what holds just now?", true, "at %s", exactly(x.v.Until))
}

func (x *explaining) event() string {
	switch e := &x.v.Event; {
	case e.Prequeueing:
		return fmt.Sprintf("event %q starts at %s, and its pre-queue at %s", e.Name, exactly(e.Start), exactly(e.PrequeueStart))
	case e.Active:
		return fmt.Sprintf("event %q has started at %s", e.Name, exactly(e.Start))
	}
	return "no event is near"
}

// slots tells how full the room is.
func (x *explaining) slots() string {
	v := x.v
	if v.closed {
		return "nobody is let in at all"
	}
	return fmt.Sprintf("%d of %d places are taken, %d of %d were let in within the last minute, and %d wait: %d may enter, %d of them without having waited",
		v.Active, v.Settings.TotalActiveUsers, v.AdmittedLast60s, v.Settings.NewUsersPerMinute, v.Waiting, v.Slots, v.SlotsNew)
}

func allowance(n int) string {
	switch {
	case n >= Unlimited:
		return "as many as come"
	case n <= 0:
		return "none"
	}
	return fmt.Sprint(n)
}

func exactly(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func brief(d time.Duration) time.Duration { return d.Truncate(time.Millisecond) }

// lastPoll returns when a visitor last asked, as far as it counted.
func (vis *Visitor) lastPoll() time.Time {
	if vis.LastPoll.IsZero() {
		return vis.Arrival
	}
	return vis.LastPoll
}

// interval returns after what time a visitor was told to come again.
func (v *View) interval(vis *Visitor) time.Duration {
	if vis.Refresh <= 0 {
		return v.Settings.RefreshInterval
	}
	return vis.Refresh
}

// place returns where a visitor stands in the order of the queue.
func (vis *Visitor) place() time.Time {
	if vis.Place.IsZero() {
		return vis.Arrival
	}
	return vis.Place
}
