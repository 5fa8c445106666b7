package limit

import (
	"cmp"
	"slices"
)

// link is what one node has to tell another one, and has heard from it.
type link struct {
	pending tally  // what was counted since the other node was last told
	rest    tally  // what of that had no room in the message yet
	every   Millis // how often pending is sent
	told    Millis // when it was last sent
	lost    uint64 // counts of what had to make room

	seq    uint64         // of the newest that was sent
	flying []group[count] // what it has; nil: it was acknowledged
	from   Millis         // from when on that was counted
	noted  rounds         // in which that was
	begun  Millis         // when it was first sent
	sent   Millis         // when it was last sent
	trip   Millis         // how long the last took until it was acknowledged

	boot  uint64 // of the other node, when it was last heard of
	heard uint64 // seq of the newest that came from it
	round uint64 // the last of which something came from it
	gone  Millis // since when the other node does not live; 0: it does
	lag   lag    // of what comes from it
}

// tally is counts of keys. What is in one message is taken to be as old as the oldest of it, so counts
// that are much older than others are in a tally of their own.
type tally struct {
	of    map[pendingKey]uint32
	since Millis // from when on they were counted
	rounds
}

// clear forgets the counts, and returns how many they were.
func (t *tally) clear() (n uint64) {
	for _, c := range t.of {
		n += uint64(c)
	}
	clear(t.of)
	return n
}

// join moves the counts of other to t.
func (t *tally) join(other *tally) {
	if len(other.of) == 0 {
		return
	}
	t.since = min(t.since, other.since)
	t.first, t.last = min(t.first, other.first), max(t.last, other.last)
	for k, n := range other.of {
		t.of[k] = sum(t.of[k], n)
	}
	clear(other.of)
}

type pendingKey struct {
	slot uint16
	key  Key
}

const (
	resendAfter Millis = 500

	maxPending = 20_000 // keys that came since the other node was last told

	// giveUpAfter is how long a node that does not answer is told of new counts. Those
	// that it hears of later it would take for requests that come now.
	giveUpAfter Millis = 3000
)

func newLink() *link {
	return &link{pending: tally{of: map[pendingKey]uint32{}}, rest: tally{of: map[pendingKey]uint32{}}}
}

// add has the other node hear of counts that were noted in a round, the oldest of which are as old as since.
func (l *link) add(f Fresh, since, every Millis, round uint64) {
	t := &l.pending
	if len(t.of) == 0 {
		t.since, t.rounds = since, rounds{round, round}
	}
	l.every, t.since, t.last = every, min(t.since, since), round
	k := pendingKey{f.Slot, f.Key}
	t.of[k] = sum(t.of[k], f.Count)
}

// give forgets what cannot be told, and returns how many counts that were: all, where the
// other node does not answer, what is too old, and where there are too many those that are least of their
// limits.
func (l *link) give(rules *Rules, now Millis) (lost uint64) {
	lost, l.lost = l.lost, 0
	if l.flying != nil && now-l.begun >= giveUpAfter {
		return lost + l.pending.clear() + l.rest.clear()
	}
	if now-l.rest.since >= giveUpAfter {
		lost += l.rest.clear()
	}
	if len(l.pending.of) <= maxPending {
		return lost
	}
	for _, k := range l.sorted(&l.pending, rules)[maxPending:] {
		lost += uint64(l.pending.of[k])
		delete(l.pending.of, k)
	}
	return lost
}

// sorted returns the keys of a tally, the largest part of its limit first. Of those that are alike, it
// is others each time that are last.
func (l *link) sorted(t *tally, rules *Rules) []pendingKey {
	type ranked struct {
		pendingKey
		part float64
		turn uint64
	}
	const odd = 0x9e3779b97f4a7c15 // its multiples are spread over all numbers
	all := make([]ranked, 0, len(t.of))
	for k, n := range t.of {
		r := ranked{pendingKey: k, turn: uint64(k.key) ^ l.seq*odd}
		if c := rules.bySlot[k.slot]; c != nil {
			r.part = float64(n) / float64(c.Requests)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.part, a.part), cmp.Compare(a.turn, b.turn), cmp.Compare(a.slot, b.slot))
	})
	keys := make([]pendingKey, len(all))
	for i := range all {
		keys[i] = all[i].pendingKey
	}
	return keys
}

// send returns what is to be sent now to a node that has that boot number; nil: nothing.
// number is one more than that of the last message to anybody.
func (l *link) send(rules *Rules, boot, number uint64, now Millis) []byte {
	switch {
	case l.flying != nil && now-l.sent < resendAfter:
		return nil
	case l.flying == nil && !l.take(rules, number, now):
		return nil
	}
	l.sent = now
	return (&counted{boot, now, l.seq, min(max(now-l.from+l.trip, 0), maxAge), l.noted, l.flying}).encode()
}

// take takes up what is to be sent next, as far as it goes into one message: what is pending, when it is due, and
// until then what that left.
func (l *link) take(rules *Rules, number uint64, now Millis) bool {
	if due := now-l.told >= l.every || now < l.told; due && len(l.pending.of) > 0 {
		if len(l.pending.of)+len(l.rest.of) <= maxItems && l.pending.since-l.rest.since <= 2*l.every {
			l.pending.join(&l.rest)
		}
		// What is left of the message before is least of its limits, and old.
		l.lost += l.rest.clear()
		l.told, l.pending, l.rest = now, l.rest, l.pending
	}
	keys := l.sorted(&l.rest, rules)
	var b batch[count]
	for _, k := range keys[:min(len(keys), maxItems)] {
		if c := rules.bySlot[k.slot]; c != nil {
			b.add(c, count{k.key, l.rest.of[k]})
		}
		delete(l.rest.of, k)
	}
	if len(b.groups) == 0 {
		return false
	}
	l.seq = number
	l.flying, l.from, l.noted, l.begun = b.groups, l.rest.since, l.rest.rounds, now
	return true
}

// acknowledge notes that what was sent under a number has arrived. It returns when that
// was first sent, and whether it is the newest.
func (l *link) acknowledge(seq uint64, now Millis) (begun Millis, ok bool) {
	if l.flying == nil || seq != l.seq {
		return 0, false
	}
	l.flying, l.trip = nil, min(max(now-l.sent, 0), resendAfter)
	return l.begun, true
}

// forget drops what the other node was to hear, and returns how many counts that were. It
// may have heard of some of them, and others through it. Numbers go on.
func (l *link) forget() (lost uint64) {
	lost = l.pending.clear() + l.rest.clear()
	for _, g := range l.flying {
		for _, i := range g.items {
			lost += uint64(i.n)
		}
	}
	l.flying = nil
	return lost
}

// drop forgets what the other node was to hear of some keys, and returns how many counts
// that were.
func (l *link) drop(gone func(Key) bool) (lost uint64) {
	for _, t := range [...]*tally{&l.pending, &l.rest} {
		for k, n := range t.of {
			if gone(k.key) {
				lost += uint64(n)
				delete(t.of, k)
			}
		}
	}
	for i := range l.flying {
		g := &l.flying[i]
		g.items = slices.DeleteFunc(g.items, func(c count) bool {
			if gone(c.key) {
				lost += uint64(c.n)
			}
			return gone(c.key)
		})
	}
	return lost
}

// hear reports whether what has come under a number, of rounds up to one, has not come before.
func (l *link) hear(boot, seq, round uint64) bool {
	if boot > l.boot {
		l.boot, l.heard, l.round = boot, 0, 0
	}
	if boot < l.boot || seq <= l.heard {
		return false
	}
	l.heard, l.round = seq, max(l.round, round)
	return true
}

// batch puts items of several rules into messages.
type batch[T any] struct {
	seq    uint64 // if it is not 0, there is one part at least
	groups []group[T]
}

func (b *batch[T]) add(c *Counter, item T) {
	i := slices.IndexFunc(b.groups, func(g group[T]) bool { return g.sum == c.sum })
	if i < 0 {
		i = len(b.groups)
		b.groups = append(b.groups, group[T]{sum: c.sum, terms: uint64(c.terms)})
	}
	b.groups[i].items = append(b.groups[i].items, item)
}

// parts returns the groups of messages that are not too long.
func (b *batch[T]) parts() (all [][]group[T]) {
	var part []group[T]
	left := maxItems
	for _, g := range b.groups {
		for len(g.items) > 0 {
			n := min(len(g.items), left)
			part = append(part, group[T]{g.sum, g.terms, g.items[:n]})
			if g.items, left = g.items[n:], left-n; left == 0 {
				all, part, left = append(all, part), nil, maxItems
			}
		}
	}
	if len(part) > 0 || b.seq > 0 && len(all) == 0 {
		all = append(all, part)
	}
	return all
}
