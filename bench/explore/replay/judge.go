package replay

import (
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// heard is how long news of a lower limit may take.
const heard = 2 * time.Second

// judge knows the limits that operators have set, and who is inside.
type judge struct {
	w        *world
	limits   map[crdt.RoomID][]*limit
	orders   []*order // that are not on a disk yet
	sessions []*session
	trouble  time.Duration // when something was last in the way of news
	missed   time.Duration // when a node was last down, cut off or starting that is not gone

	free   bool          // the policy is another one: rights limit nothing
	loose  time.Duration // until then it was: sessions that began before may have no right; 0: never
	unsure bool          // an order was lost with the node that had it, or may have been
}

// limit is one that an operator has set.
type limit struct {
	most  int64
	at    time.Duration
	until time.Duration // when another one took its place; 0: none has
	over  time.Duration // when nobody went by it any more, nor could come to; 0: somebody may
}

// order is what a node was told, and has not on its disk yet: a crash may undo it, and the
// operator has no answer.
type order struct {
	at    *machine
	core  *node.Core
	told  uint64
	holds func()
}

func (j *judge) disturbed() { j.trouble = max(j.trouble, j.w.now) }

// first sets the limit with which a room begins.
func (j *judge) first(id crdt.RoomID, most int64) {
	j.limits[id] = append(j.limits[id], &limit{most: most, at: j.w.now})
}

// set notes a limit that a node was told. Those of before go on being in force until it is
// on a disk, and one that was set at the same moment as well: which is newer is not said.
func (j *judge) set(id crdt.RoomID, most int64, by *machine) {
	j.first(id, most)
	j.w.note("the limit of room %d is to be %d", id[0], most)
	now := j.w.now
	j.order(by, func() {
		for _, l := range j.limits[id] {
			if l.until == 0 && l.at < now {
				l.until = j.w.now
			}
		}
	})
}

// order has something hold once a node has on its disk what it knows now.
func (j *judge) order(at *machine, holds func()) {
	at.told = j.w.now
	j.orders = append(j.orders, &order{at, at.core, at.core.Told(), holds})
}

// noted has what is on disk by now hold.
func (j *judge) noted(m *machine) {
	j.orders = slices.DeleteFunc(j.orders, func(o *order) bool {
		if o.core != m.core || !m.core.Noted(o.told) {
			return false
		}
		o.holds()
		return true
	})
}

// stopped notes that a node is down. What it was told a moment ago is known nowhere else
// perhaps, or not at all any more.
func (j *judge) stopped(m *machine) {
	m.alone = m.told > 0 && (m.cut || j.w.now < max(m.told, j.trouble)+heard)
	j.disturbed()
	if slices.ContainsFunc(j.orders, func(o *order) bool { return o.at == m }) || m.lost() && m.alone {
		j.unsure = true
	}
}

// policy notes which policy a room has. The limit is strict under one of them.
func (j *judge) policy(is room.Policy, at *machine) {
	if is != room.Escrow {
		j.free = true
		return
	}
	j.order(at, func() { j.free, j.loose = false, j.w.now })
}

// inForce returns the greatest limit that a node may go by at this moment, or went by since
// some time.
func (j *judge) inForce(id crdt.RoomID, since time.Duration) (most int64) {
	j.expire()
	for _, l := range j.limits[id] {
		if l.until == 0 || l.over == 0 && max(l.until, j.troubled())+heard >= since || l.over >= since && l.over > 0 {
			most = max(most, l.most)
		}
	}
	return most
}

// expire notes which limits are over for good: all nodes that there are run, no newer limit was
// lost with a node, and they have had the time in which they have to hear of that. Trouble that
// comes later brings none back.
func (j *judge) expire() {
	if slices.ContainsFunc(j.w.nodes, func(m *machine) bool { return m.unheard() || m.core == nil && !m.gone }) {
		j.missed = j.w.now
		return
	}
	for _, all := range j.limits {
		for _, l := range all {
			if at := max(l.until, j.trouble) + heard; l.over == 0 && l.until > 0 && j.w.now > at {
				l.over = at
			}
		}
	}
}

// troubled returns until when something was in the way of news.
func (j *judge) troubled() time.Duration {
	if slices.ContainsFunc(j.w.nodes, (*machine).unheard) {
		return j.w.now
	}
	return j.trouble
}

// count returns how many are in a room, or were let in within the last minute, as the limit is;
// strict is false if some of them came in while rights were not the limit.
func (j *judge) count(id crdt.RoomID) (n int64, strict bool) {
	now, since := j.w.time(), max(j.loose, j.troubled())+heard
	strict = !j.free
	for _, s := range j.sessions {
		counts := !now.After(s.pass.LeaseEnd)
		if j.w.h.Rate {
			counts = s.from > j.w.now-time.Minute
		}
		if counts && s.room == id {
			n++
			strict = strict && (j.loose == 0 || s.from > since)
		}
	}
	return n, strict
}

// admitted judges when somebody was let in, or a session went on by another right: it may have
// begun under a limit that is in force no more.
func (j *judge) admitted(s *session, by *machine) {
	n, strict := j.count(s.room)
	since, what := s.from, "are inside"
	if j.w.h.Rate {
		since, what = j.w.now-time.Minute, "were let in within 60 s"
	}
	j.w.result.Peak = max(j.w.result.Peak, n)
	if most := j.inForce(s.room, since); strict && n > most {
		j.w.broken(fmt.Sprintf("node %d let somebody in, or go on: %d %s, and the greatest limit in force is %d", by.no+1, n, what, most))
	}
}

// rights judges what nodes own: rights that nobody has asked for yet let somebody in as soon
// as somebody does.
func (j *judge) rights() {
	owned, minted := map[crdt.RoomID]int64{}, map[crdt.RoomID]int64{}
	more := map[crdt.RoomID]*machine{}
	for _, m := range j.w.nodes {
		r := m.room()
		if r == nil {
			continue
		}
		id, is := r.Settings().ID, r.Rights()
		owned[id] += max(0, j.w.of(is.Held))
		n := j.w.of(is.Minted)
		if was, known := m.minted[id]; known && m.counted == m.core && n > was {
			more[id] = m
		}
		m.minted[id], m.counted = n, m.core
	}
	lost := slices.ContainsFunc(j.w.nodes, (*machine).lost)
	since := j.w.now - j.w.follows()
	if j.expire(); lost || j.missed > since {
		since = 0 // until whoever burns rights is there again, more may be left
	}
	if j.free || j.loose > 0 && j.loose > since {
		since = 0 // while rights limit nothing nobody burns any
	}
	for id, n := range owned {
		if most := j.inForce(id, since); n > most {
			j.w.broken(fmt.Sprintf("the nodes that run own %d rights, and the greatest limit in force of late was %d", n, most))
		}
	}
	if j.free || j.unsure || lost {
		return // whoever recovers a lost disk counts again what that node had minted unheard
	}
	for _, m := range j.w.nodes {
		for id, n := range m.minted {
			minted[id] += n
		}
	}
	for id, m := range more {
		if most := j.inForce(id, j.w.now); minted[id] > most {
			j.w.broken(fmt.Sprintf("node %d made rights: there are %d, and the greatest limit in force is %d", m.no+1, minted[id], most))
		}
	}
}

// settled says what does not add up between the nodes, all of which can hear each other by
// now; "" if all does. It has to where a node is left that stays: one that was leaving to a
// node that is lost now has nobody who could take its rights.
func (j *judge) settled() string {
	if !slices.ContainsFunc(j.w.nodes, func(m *machine) bool { return !m.gone && !m.goes }) {
		return ""
	}
	type books struct {
		room          crdt.RoomID
		minted, limit int64
	}
	var all []books
	var sum int64
	for _, m := range j.w.nodes {
		if m.gone {
			continue
		}
		r := m.room()
		if r == nil {
			return fmt.Sprintf("node %d is not ready, or has no room", m.no+1)
		}
		is := r.Rights()
		sum += j.w.of(is.Held)
		all = append(all, books{r.Settings().ID, j.w.of(is.MintedByAll), j.w.of(is.Limit)})
	}
	all = slices.Compact(all)
	is := all[0]
	newest := slices.ContainsFunc(j.limits[is.room], func(l *limit) bool { return l.until == 0 && l.most == is.limit })
	switch wrong := slices.IndexFunc(all, func(b books) bool { return b.room != j.w.room }); {
	case wrong >= 0 && !j.unsure:
		return fmt.Sprintf("a node has room %d", all[wrong].room[0])
	case j.free:
	case len(all) > 1:
		return fmt.Sprintf("one node has it that %d of %d are minted, and another %d of %d", is.minted, is.limit, all[1].minted, all[1].limit)
	case !newest && !j.unsure:
		return fmt.Sprintf("all nodes have a limit of %d, which is not the newest", is.limit)
	case sum != is.limit || is.minted != is.limit:
		return fmt.Sprintf("%d rights are held, %d minted, and the limit is %d", sum, is.minted, is.limit)
	}
	return ""
}
