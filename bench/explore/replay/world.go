package replay

import (
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

const (
	sessionLength = 5 * time.Second // the shortest that schedules have, too
	firstCap      = 6               // the limit at first
	plenty        = 1000            // what is never the limit
	firstRoom     = 1               // how many rooms were made before the first act
)

// epoch is when virtual time begins.
var epoch = time.Unix(1_700_000_000, 0)

// world is one run.
type world struct {
	h      History
	rules  ticket.Rules
	now    time.Duration
	queue  []event // in the order in which they happen
	nodes  []*machine
	judge  judge
	room   crdt.RoomID // the one that operators mean
	rooms  byte        // how many were made
	result Result
	trace  func(format string, args ...any)
	err    error

	begun  bool // the first act has come
	homing bool // nobody new comes, and all have gone home
	minted bool // a node has written, since the last act, that it minted
	taken  bool // the same, that it took over rights, or recovered them

	met       int            // deviations of which there was an occasion
	occasions map[string]int // since the first act
}

// event is something that happens at a time.
type event struct {
	at time.Duration
	do func()
}

// after has something happen when a time has passed, and after all that is to happen at the same time.
func (w *world) after(d time.Duration, do func()) {
	at := w.now + d
	i := len(w.queue)
	for i > 0 && w.queue[i-1].at > at {
		i--
	}
	w.queue = slices.Insert(w.queue, i, event{at, do})
}

// every has something happen again and again, until it returns false.
func (w *world) every(d, first time.Duration, do func() bool) {
	w.after(first, func() {
		if do() {
			w.every(d, d, do)
		}
	})
}

// run lets a time pass, unless a promise is broken.
func (w *world) run(d time.Duration) { w.runUntil(d, w.over) }

// runUntil lets a time pass, until something is done.
func (w *world) runUntil(d time.Duration, done func() bool) {
	for end := w.now + d; !done(); {
		if len(w.queue) == 0 || w.queue[0].at > end {
			w.now = end
			return
		}
		e := w.queue[0]
		w.queue = w.queue[1:]
		w.now = e.at
		e.do()
	}
}

func (w *world) over() bool { return w.err != nil || w.result.Broken != "" }

func (w *world) time() time.Time { return epoch.Add(w.now) }

func (w *world) note(format string, args ...any) {
	if w.trace != nil {
		w.trace("%8.3f "+format, append([]any{w.now.Seconds()}, args...)...)
	}
}

func (w *world) broken(text string) {
	if w.result.Broken == "" {
		w.note("BROKEN: %s", text)
		w.result.Broken = text
	}
}

func newWorld(h History, rules ticket.Rules, trace func(string, ...any)) *world {
	w := &world{h: h, rules: rules, trace: trace, occasions: map[string]int{}, room: crdt.RoomID{1}, rooms: firstRoom}
	w.judge = judge{w: w, limits: map[crdt.RoomID][]*limit{}}
	w.judge.first(w.room, firstCap)
	for i := range h.Layout {
		m := &machine{no: i, minted: map[crdt.RoomID]int64{}}
		m.ID, m.Site = crdt.NodeID{h.IDs[i] - '0', 0xaa}, h.Layout[i:i+1]
		if m.disk, w.err = durable.NewMemory(nil); w.err != nil {
			return w
		}
		w.nodes = append(w.nodes, m)
	}
	for _, m := range w.nodes {
		w.start(m)
	}
	return w
}

func (w *world) settings(id crdt.RoomID) room.Settings {
	s := room.Settings{
		ID: id, Name: "room", Path: "/", TotalActiveUsers: plenty, NewUsersPerMinute: plenty, SessionDuration: sessionLength,
		QueueingMethod: room.FIFO, Policy: room.Escrow, RefreshInterval: time.Second, BucketSpan: time.Second,
	}
	*w.limit(&s) = firstCap
	return s.WithDefaults()
}

// limit returns the one that operators change.
func (w *world) limit(s *room.Settings) *int {
	if w.h.Rate {
		return &s.NewUsersPerMinute
	}
	return &s.TotalActiveUsers
}

// of returns what that is about of an amount of rights.
func (w *world) of(a ticket.Amount) int64 {
	if w.h.Rate {
		return a.Rate
	}
	return a.Places
}

// follows is how long more rights may be there than the limit says that was lowered: as long
// as somebody who was inside stays, or who was let in counts, and as a node that was lost or
// stopped then has to leave what it had in use alone.
func (w *world) follows() time.Duration {
	if w.h.Rate {
		return time.Minute + longStay + sessionLength
	}
	return longStay + sessionLength
}

// occasion is one for deviations, with a message, a write or links as histories name them. It returns
// those that the history has for it, and notes those of the first of a kind that others may have.
func (w *world) occasion(kind, who string, noted bool) (all []Deviation) {
	if !w.begun {
		return nil
	}
	of, first := kind+" "+who, 8
	if kind != write && kind != links {
		first = 2
	}
	w.occasions[of]++
	nth := w.occasions[of]
	for _, d := range deviations(kind) {
		twist := fmt.Sprintf("%s %s #%d", d, of, nth)
		if noted && nth <= first {
			w.result.Twists = append(w.result.Twists, twist)
		}
		if slices.Contains(w.h.Twists, twist) {
			w.note("%s", twist)
			w.met++
			all = append(all, d)
		}
	}
	return all
}
