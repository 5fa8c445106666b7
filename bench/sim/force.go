package sim

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// Which limits are in force where. That follows from what operators said, from which
// nodes run and reach each other, and from which messages arrived; no node is asked.

const (
	// spreads is how long after an operator was told that a limit holds, and after a cut
	// has healed, every node that is reached has to know it.
	spreads = int64(2 * time.Second)
	// lingers is how long a limit counts that is in force no more: of a node that has stopped
	// or was told another, and of an event that is over.
	lingers = int64(2 * time.Second)
	// settles is how long it takes until all have found out that a node or a way is gone.
	// Until then what is to be passed on may be given to somebody who is not there.
	settles = int64(failSeenMax) + noticed
	// hindrances is how often news to a node begins again since somebody went or came: what was on
	// its way may be lost with a relay. Whoever comes and goes for ever is in the way of nothing
	// for ever: after that only the time counts in which somebody is missing.
	hindrances = 8
	// durableAfter is how long somebody has known a limit that is certainly on disk.
	durableAfter = int64(10 * time.Second)
	// maxChanges is how many changes of limits a run may have: one bit for each.
	maxChanges = 64

	never = math.MaxInt64
)

// news is a set of changes of limits, by number.
type news uint64

func only(c int) news { return 1 << c }

func (n news) has(c int) bool { return n&only(c) != 0 }

// all yields the numbers of a set.
func (n news) all(yield func(int) bool) {
	for ; n != 0; n &= n - 1 {
		if !yield(bits.TrailingZeros64(uint64(n))) {
			return
		}
	}
}

// change is what an operator said once. Of two that were said at about the same time, at
// nodes that had not heard of each other, either may win.
type change struct {
	room  uint8
	limit ticket.Amount
	at    int64
	older news // those that it certainly takes the place of
	told  bool // the operator has been told that it holds: it is on disk
	vague bool // it may have changed nothing
}

// knower is what a node may know of limits, and has to.
type knower struct {
	may    news    // it goes by one of these
	must   news    // and by nothing older than any of these
	kept   news    // of those, what is on its disk for certain
	stored news    // what may be on its disk
	gated  news    // what it may tell instead, as long as the last is not on its disk
	since  []int64 // by change: when it had to know it
	comes  []coming
	runs   bool
	fresh  bool  // it has only had the limits that it was configured with to go by
	ended  int64 // when it stopped last
	ailed  int64 // when its disk was last slow, full or failing
	island int32
}

// coming is how long news of a change has had time to come to a node, undisturbed.
type coming struct {
	quiet int64
	begun uint8 // how often that has begun again
}

// stage is from when on which limits are the greatest in force.
type stage struct {
	from int64
	most ticket.Amount
}

// force knows the limits in force. Times never go back.
type force struct {
	now      int64
	together bool  // nodes tell each other of limits
	takes    int64 // until all who are reached know a limit
	changes  []change
	nodes    []knower
	ghosts   []knower // with disks that are lost, and what nodes went by before they were told otherwise
	islands  []island
	spans    []span
	timers   []int64   // when something changes without anything happening, in order
	rooms    [][]stage // by number of the room
}

// newForce begins with nodes that know the first limits.
func newForce(nodes int, s *room.Settings, start int64) *force {
	f := &force{now: start, together: s.Policy == room.Escrow, takes: spreads, spans: spansOf(s)}
	f.changes = []change{{limit: limitsOf(s), at: longAgo, told: true}}
	for range nodes {
		f.nodes = append(f.nodes, knower{may: 1, must: 1, kept: 1, stored: 1, since: []int64{longAgo}, ended: longAgo, ailed: longAgo, island: -1})
	}
	for _, p := range f.spans {
		f.wake(p.from - int64(clockBound))
		f.wake(p.to + int64(clockBound) + lingers)
	}
	return f
}

func limitsOf(s *room.Settings) ticket.Amount {
	return ticket.Amount{Places: int64(s.TotalActiveUsers), Rate: int64(s.NewUsersPerMinute)}
}

// wake has the limits looked at again at some time.
func (f *force) wake(at int64) {
	if at <= f.now || at >= never-lingers {
		return
	}
	if i, known := slices.BinarySearch(f.timers, at); !known {
		f.timers = slices.Insert(f.timers, i, at)
	}
}

// advance lets time pass.
func (f *force) advance(to int64) {
	for len(f.timers) > 0 && f.timers[0] <= to {
		f.pass(f.timers[0])
		f.timers = f.timers[1:]
		f.teach()
		f.look()
	}
	f.pass(max(f.now, to))
}

// say is that an operator gives a room other limits at a node, which goes by them from
// then on. It returns the number of the change. To say what the node goes by already is no
// change: whatever is newer elsewhere still is. If that is not certain, either may win.
func (f *force) say(node int32, room uint8, limit ticket.Amount) int {
	n, c := &f.nodes[node], len(f.changes)
	may := n.may & f.of(room)
	for k := range may.all {
		if f.changes[k].limit == limit && may == only(k) {
			return k
		} else if f.changes[k].limit == limit {
			return f.either(node, room, limit)
		}
	}
	is := change{room: room, limit: limit, at: f.now}
	for i, was := range f.changes {
		if was.room == room && (n.must.has(i) || f.together && was.at < f.now-int64(clockBound)) {
			is.older |= only(i)
		}
	}
	f.changes = append(f.changes, is)
	f.ghosts = append(f.ghosts, knower{may: n.may, ended: f.now}) // what the node went by until now
	f.wake(f.now + lingers)
	n.gated |= n.may | only(c)
	f.learns(node, only(c))
	n.stored |= only(c)
	f.look()
	return c
}

// confirm is that an operator is told that a change holds.
func (f *force) confirm(node int32, c int) {
	if f.changes[c].told || f.changes[c].vague {
		return
	}
	f.changes[c].told = true
	n := &f.nodes[node]
	n.kept, n.gated = n.kept|only(c), 0
	f.prune(n)
	f.teach()
	f.look()
}

// carries returns what a message of a node may tell.
func (f *force) carries(node int32) news {
	if !f.together {
		return 0
	}
	return f.nodes[node].may | f.nodes[node].gated
}

// heard is that a message arrives.
func (f *force) heard(node int32, told news) {
	n := &f.nodes[node]
	if n.gated != 0 {
		n.gated |= told // and passes it on, as long as it does not tell its own
	}
	if told&^n.may == 0 {
		return
	}
	was := n.may
	n.may |= told
	f.prune(n)
	if n.may != was {
		n.stored |= n.may
		f.look()
	}
}

// learns is that a node has to know of changes from now on.
func (f *force) learns(node int32, what news) {
	n := &f.nodes[node]
	for c := range (what &^ n.must).all {
		for len(n.since) <= c {
			n.since = append(n.since, never-durableAfter)
		}
		n.since[c] = f.now
	}
	n.must |= what
	n.may |= what
	n.stored |= what
	f.prune(n)
}

// prune takes out what cannot be any more: whoever knows a change goes by no older one,
// and tells of none.
func (f *force) prune(n *knower) {
	for c := range n.must.all {
		n.may &^= f.changes[c].older
	}
	for c := range n.kept.all {
		n.stored &^= f.changes[c].older
	}
}

// look notes which limits are the greatest in force from now on.
func (f *force) look() {
	for len(f.rooms) <= int(f.changes[len(f.changes)-1].room) {
		f.rooms = append(f.rooms, nil)
	}
	for r := range f.rooms {
		var most ticket.Amount
		for _, nodes := range [][]knower{f.nodes, f.ghosts} {
			for k := range nodes {
				most = most.Max(f.at(&nodes[k], r))
			}
		}
		if most.IsZero() {
			continue // nobody runs: nobody is let in
		}
		stages := f.rooms[r]
		if k := len(stages); k > 0 && stages[k-1].most == most {
			continue
		}
		f.rooms[r] = append(stages, stage{f.now, most})
	}
}

// at returns the greatest limits that a node may go by.
func (f *force) at(n *knower, room int) (most ticket.Amount) {
	if !n.runs && f.now >= n.ended+lingers {
		return most
	}
	for c := range n.may.all {
		if is := &f.changes[c]; int(is.room) == room {
			most = most.Max(f.inEvents(is.limit))
		}
	}
	return most
}

// largest returns the change with the most places of those that a node may go by in a room, and
// 1 more than its number; 0: there is none.
func (f *force) largest(node int32, room uint8) (which int) {
	for c := range f.nodes[node].may.all {
		if f.changes[c].room == room && (which == 0 || f.changes[c].limit.Places > f.changes[which-1].limit.Places) {
			which = c + 1
		}
	}
	return which
}

// unheard reports whether a change gives more places than a limit, an operator was told that it
// holds, and a node need not know that another has taken its place.
func (f *force) unheard(node int32, c int, limit int64) bool {
	for newer := range f.nodes[node].must.all {
		if f.changes[newer].older.has(c) {
			return false
		}
	}
	return f.changes[c].told && f.inEvents(f.changes[c].limit).Places > limit
}

// most returns the greatest limits that were in force in a room from some time until now.
func (f *force) most(room uint8, from int64) (most ticket.Amount) {
	if int(room) >= len(f.rooms) {
		return most
	}
	for _, s := range slices.Backward(f.rooms[room]) {
		most = most.Max(s.most)
		if s.from <= from {
			break
		}
	}
	return most
}

// allows reports whether a node may go by these limits by now, and returns what it may.
// Of a room of which nothing has reached it there is nothing to say.
func (f *force) allows(node int32, room uint8, limit ticket.Amount) (bool, []ticket.Amount) {
	n := &f.nodes[node]
	var may []ticket.Amount
	for c := range n.may.all {
		if f.changes[c].room == room {
			may = append(may, f.changes[c].limit)
		}
	}
	if len(may) > 0 && (n.fresh || n.must&f.of(room) == 0) {
		may = append(may, f.changes[0].limit) // with which it is configured
	}
	for _, m := range may {
		for _, p := range f.spans {
			if p.near(f.now) && p.over(m) == limit {
				return true, may
			}
		}
	}
	return len(may) == 0, may
}

// of returns all changes of a room.
func (f *force) of(room uint8) (all news) {
	for c := range f.changes {
		if f.changes[c].room == room {
			all |= only(c)
		}
	}
	return all
}

// forgotten reports whether no node knows of any limit of a room, or has one on its disk.
func (f *force) forgotten(room uint8) bool {
	all := f.of(room)
	return !slices.ContainsFunc(f.nodes, func(n knower) bool { return (n.may|n.stored)&all != 0 })
}

// creates is that a room is made at a node by the limits that this is configured with. If an
// operator has set some before, which that node may have heard of, either may hold.
func (f *force) creates(node int32, room uint8, limit ticket.Amount) int {
	if f.nodes[node].may&f.of(room) != 0 {
		return f.either(node, room, limit)
	}
	return f.say(node, room, limit)
}

// either is a change of which nobody has to know: what was before it may hold as well.
func (f *force) either(node int32, room uint8, limit ticket.Amount) int {
	n, c := &f.nodes[node], len(f.changes)
	f.changes = append(f.changes, change{room: room, limit: limit, at: f.now, vague: true})
	n.may |= only(c)
	n.stored |= only(c)
	n.gated |= n.may
	f.look()
	return c
}

// stops is that a node does nothing from now on. What it knew but had not written, it may
// have lost when it starts again.
func (f *force) stops(node int32) {
	n := &f.nodes[node]
	if !n.runs {
		return
	}
	n.runs, n.ended = false, f.now
	f.wake(f.now + lingers)
}

// dies is that the process of a node is no more.
func (f *force) dies(node int32) {
	f.stops(node)
	n := &f.nodes[node]
	for c := range n.must.all {
		if f.now >= max(n.since[c], n.ailed)+durableAfter {
			n.kept |= only(c)
		}
	}
	f.prune(n)
}

// starts is that a node starts with what it finds on its disk.
func (f *force) starts(node int32) {
	n := &f.nodes[node]
	n.may, n.must, n.gated, n.comes = n.stored, n.kept, 0, nil
	if !f.together {
		n.may, n.must = 1, 1 // which is in its settings
	}
}

// forgets is that the disk of a node is lost.
func (f *force) forgets(node int32) {
	n := &f.nodes[node]
	f.ghosts = append(f.ghosts, *n)
	*n = knower{ended: longAgo, ailed: longAgo, island: -1, fresh: true}
}

// ails notes that the disk of a node is not as it should be from now on, or was until now.
func (f *force) ails(node int32, still bool) {
	f.nodes[node].ailed = f.now
	if still {
		f.nodes[node].ailed = never - durableAfter
	}
}

// leaves is that a node has left in good order: what it had to know does not go with it.
func (f *force) leaves(node int32) {
	n := &f.nodes[node]
	if n.island < 0 {
		return
	}
	f.islands[n.island].left |= n.must
}

// inEvents returns what the greatest limits are that come of some by events about now.
func (f *force) inEvents(limit ticket.Amount) (most ticket.Amount) {
	for _, p := range f.spans {
		if p.near(f.now) {
			most = most.Max(p.over(limit))
		}
	}
	return most
}
