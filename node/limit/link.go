package limit

import (
	"cmp"
	"slices"
)

// link is what one node has to tell another one, and has heard from it.
type link struct {
	pending map[pendingKey]uint32
	since   Millis // from when on what is pending was counted
	every   Millis // how often it is sent

	seq    uint64         // of the newest that was sent
	flying []group[count] // what it has; nil: it was acknowledged
	from   Millis         // from when on that was counted
	begun  Millis         // when it was first sent
	sent   Millis         // when it was last sent
	trip   Millis         // how long the last took until it was acknowledged

	boot  uint64 // of the other node, when it was last heard of
	heard uint64 // seq of the newest that came from it
	lag   lag    // of what comes from it
}

type pendingKey struct {
	slot uint16
	key  Key
}

const (
	resendAfter Millis = 500

	maxPending = 20_000 // keys

	// giveUpAfter is how long a node that does not answer is told of new counts. Those
	// that it hears of later it would take for requests that come now.
	giveUpAfter Millis = 3000
)

func newLink() *link { return &link{pending: map[pendingKey]uint32{}} }

// add has the other node hear of counts, the oldest of which are as old as since.
func (l *link) add(f Fresh, since, every Millis) {
	if l.every = every; len(l.pending) == 0 || since < l.since {
		l.since = since
	}
	k := pendingKey{f.Slot, f.Key}
	l.pending[k] = sum(l.pending[k], f.Count)
}

// give forgets what cannot be told, and returns how many counts that were: all, where the
// other node does not answer, and where there are too many those that are least of their
// limits.
func (l *link) give(rules *Rules, now Millis) (lost uint64) {
	if l.flying != nil && now-l.begun >= giveUpAfter {
		for _, n := range l.pending {
			lost += uint64(n)
		}
		clear(l.pending)
		return lost
	}
	if len(l.pending) <= maxPending {
		return 0
	}
	for _, k := range l.sorted(rules)[maxPending:] {
		lost += uint64(l.pending[k])
		delete(l.pending, k)
	}
	return lost
}

// sorted returns what is pending, the largest part of its limit first.
func (l *link) sorted(rules *Rules) []pendingKey {
	part := func(k pendingKey) float64 {
		if c := rules.bySlot[k.slot]; c != nil {
			return float64(l.pending[k]) / float64(c.Requests)
		}
		return 0
	}
	keys := make([]pendingKey, 0, len(l.pending))
	for k := range l.pending {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b pendingKey) int {
		return cmp.Or(cmp.Compare(part(b), part(a)), cmp.Compare(a.slot, b.slot), cmp.Compare(a.key, b.key))
	})
	return keys
}

// send returns what is to be sent now to a node that has that boot number; nil: nothing.
func (l *link) send(rules *Rules, boot uint64, now Millis) []byte {
	switch {
	case l.flying != nil && now-l.sent < resendAfter:
		return nil
	case l.flying == nil && (len(l.pending) == 0 || now-l.sent < l.every && now >= l.sent):
		return nil
	case l.flying == nil && !l.take(rules, now):
		return nil
	}
	l.sent = now
	return (&counted{boot, now, l.seq, min(max(now-l.from+l.trip, 0), maxAge), l.flying}).encode()
}

// take takes up what is pending, as far as it goes into one message.
func (l *link) take(rules *Rules, now Millis) bool {
	keys := l.sorted(rules)
	var b batch[count]
	for _, k := range keys[:min(len(keys), maxItems)] {
		if c := rules.bySlot[k.slot]; c != nil {
			b.add(c, count{k.key, l.pending[k]})
		}
		delete(l.pending, k)
	}
	if len(b.groups) == 0 {
		return false
	}
	l.seq++
	l.flying, l.from, l.begun = b.groups, l.since, now
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
	for _, n := range l.pending {
		lost += uint64(n)
	}
	for _, g := range l.flying {
		for _, i := range g.items {
			lost += uint64(i.n)
		}
	}
	clear(l.pending)
	l.flying = nil
	return lost
}

// drop forgets what the other node was to hear of some keys, and returns how many counts
// that were.
func (l *link) drop(gone func(Key) bool) (lost uint64) {
	for k, n := range l.pending {
		if gone(k.key) {
			lost += uint64(n)
			delete(l.pending, k)
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

// hear reports whether what has come under a number has not come before.
func (l *link) hear(boot, seq uint64) bool {
	if boot > l.boot {
		l.boot, l.heard = boot, 0
	}
	if boot < l.boot || seq <= l.heard {
		return false
	}
	l.heard = seq
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
