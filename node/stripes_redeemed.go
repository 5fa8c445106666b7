package node

import (
	"math"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/packed"
	"github.com/ropeline/ropeline/node/ticket"
)

// What a stripe knows of waiting passes that were redeemed. There is one for everybody who
// has waited and is inside, so it is kept in few bytes.

// redeemed is the pass that a waiting one was exchanged for.
type redeemed struct {
	pass   Pass // zero unless confirmed
	is     redeemState
	by     crdt.NodeID   // claimed: who may let the visitor in
	number uint64        // claimed: of the question
	kept   time.Duration // for how long this is known after the waiting pass was shown; claimed: after the word
	until  time.Time
}

type redeemState uint8

const (
	unknown   redeemState = iota
	claimed               // a node may let the visitor in
	confirmed             // somebody was let in
	late                  // the place was taken up long before
)

// isKnown reports whether the pass was redeemed.
func (r redeemed) isKnown() bool { return r.is == confirmed || r.is == late }

// redeemedKept is the least for which whoever shows a waiting pass again gets the session
// that it was exchanged for; see redeemedFor.
const redeemedKept = 2 * time.Minute

// redeemedFor is how long after a waiting pass was shown whoever shows it again gets the
// session that it was exchanged for. Answers may be lost, or come late: the site has a
// minute, and the visitor's browser asks again some time after that. Where cookies do not
// reach the visitor it is shown with each request, so it is of use for a session at least.
func (r *Room) redeemedFor() time.Duration { return max(redeemedKept, r.Settings().SessionDuration) }

// redeemedTable is what is known of waiting passes. The zero value is ready.
type redeemedTable struct {
	kept packed.Table[visitKey, redeemedInFew]

	// anchors are the starts of nodes that kept speaks of: few. They are forgotten when
	// nothing is known any more.
	anchors []crdt.Incarnation
	index   map[crdt.Incarnation]uint32
}

// redeemedInFew is redeemed without what the key says. Times are Unix ns.
type redeemedInFew struct {
	arrival, accepted, end, until int64  // the first three: zero unless confirmed
	number                        uint64 // of the ticket; claimed: of the question
	anchor                        uint32 // in anchors: of the ticket; claimed: who may let the visitor in
	block                         uint32 // of the ticket
	keptMS                        uint32 // rounded up
	is                            redeemState
}

func (t *redeemedTable) get(k visitKey) redeemed {
	if x := t.kept.Find(k); x != nil {
		return t.unpack(k, x)
	}
	return redeemed{}
}

func (t *redeemedTable) unpack(k visitKey, x *redeemedInFew) redeemed {
	r := redeemed{is: x.is, kept: time.Duration(x.keptMS) * time.Millisecond, until: time.Unix(0, x.until)}
	switch of := t.anchors[x.anchor]; x.is {
	case claimed:
		r.by, r.number = of.Node, x.number
	case confirmed:
		r.pass = Pass{
			Visitor: k.visitor, Room: k.room, Arrival: instant(x.arrival), AcceptedAt: instant(x.accepted), LeaseEnd: instant(x.end),
			Ticket: ticket.Ticket{Anchor: of.Node, Boot: of.Boot, Block: x.block, Seq: x.number},
		}
	}
	return r
}

func (t *redeemedTable) put(k visitKey, r redeemed) {
	x := redeemedInFew{
		until: crdt.Nanos(r.until), is: r.is,
		keptMS: uint32(min((r.kept+time.Millisecond-1)/time.Millisecond, math.MaxUint32)),
	}
	of := crdt.Incarnation{Node: r.by}
	switch p := &r.pass; r.is {
	case claimed:
		x.number = r.number
	case confirmed:
		of = crdt.Incarnation{Node: p.Ticket.Anchor, Boot: p.Ticket.Boot}
		x.arrival, x.accepted, x.end = crdt.Nanos(p.Arrival), crdt.Nanos(p.AcceptedAt), crdt.Nanos(p.LeaseEnd)
		x.block, x.number = p.Ticket.Block, p.Ticket.Seq
	}
	x.anchor = t.anchor(of)
	*t.kept.Add(k) = x
}

// anchor returns where in anchors a start of a node is.
func (t *redeemedTable) anchor(of crdt.Incarnation) uint32 {
	i, known := t.index[of]
	if !known {
		if t.index == nil {
			t.index = map[crdt.Incarnation]uint32{}
		}
		i = uint32(len(t.anchors))
		t.anchors, t.index[of] = append(t.anchors, of), i
	}
	return i
}

// forget drops what no pass can ask for any more.
func (t *redeemedTable) forget(now time.Time) {
	for k, x := range t.kept.All() {
		if now.UnixNano() >= x.until {
			t.kept.Delete(k)
		}
	}
	if t.kept.Len() == 0 {
		t.anchors, t.index = nil, nil
	}
}

// noTime is what crdt.Nanos makes of the zero time.
const noTime = math.MinInt64

func instant(ns int64) time.Time {
	if ns == noTime {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// redeem remembers what a waiting pass was exchanged for at a node. When somebody with
// the same pass was faster, what they got is returned, and false; so is what there is if
// the node may not let the visitor in, or not any more.
func (s *stripe) redeem(k visitKey, by crdt.NodeID, r redeemed, now time.Time) (redeemed, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.shownLocked(k, now); old.is != claimed || old.by != by {
		return old, false
	}
	s.rememberLocked(k, r, now)
	return r, true
}

// note remembers r, unless it is known what the pass was exchanged for. It returns what is
// known then.
func (s *stripe) note(k visitKey, r redeemed, now time.Time) redeemed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.shownLocked(k, now); old.isKnown() {
		return old
	}
	s.rememberLocked(k, r, now)
	return r
}

// offer is note for a claim, which no node takes from another one. Of an unknown r nothing
// is remembered.
func (s *stripe) offer(k visitKey, r redeemed, now time.Time) redeemed {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.shownLocked(k, now)
	if old.isKnown() || r.is == unknown || old.is == claimed && old.by != r.by {
		return old
	}
	s.rememberLocked(k, r, now)
	return r
}

// claims reports whether a node may let a visitor in.
func (s *stripe) claims(k visitKey, by crdt.NodeID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.shownLocked(k, now)
	return r.is == claimed && r.by == by
}

// claim is that a node may let a visitor in, by the reply to a question of its own.
type claim struct {
	key    visitKey
	by     crdt.NodeID
	number uint64
}

// unclaim notes that a node does not let a visitor in.
func (s *stripe) unclaim(c claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unclaimLocked(c)
}

func (s *stripe) unclaimLocked(c claim) bool {
	r := s.redeemed.get(c.key)
	is := r.is == claimed && r.by == c.by && r.number == c.number
	if is {
		s.redeemed.kept.Delete(c.key)
	}
	return is
}

// giveUpClaim is unclaim for this node's own requests: the owner shall hear of it.
func (s *stripe) giveUpClaim(c claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unclaimLocked(c) {
		s.unused = append(s.unused, c)
		s.mark()
	}
}

func (s *stripe) rememberLocked(k visitKey, r redeemed, now time.Time) {
	r.until = now.Add(r.kept)
	s.redeemed.put(k, r)
}

// remember replaces what is known of a waiting pass by what its owner has said.
func (s *stripe) remember(k visitKey, r redeemed, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rememberLocked(k, r, now)
}

// shown returns what a waiting pass was exchanged for, which is known for as long again.
func (s *stripe) shown(k visitKey, now time.Time) redeemed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shownLocked(k, now)
}

func (s *stripe) shownLocked(k visitKey, now time.Time) redeemed {
	x := s.redeemed.kept.Find(k)
	if x == nil || now.UnixNano() >= x.until {
		return redeemed{}
	}
	if x.is == confirmed || x.is == late {
		x.until = now.Add(time.Duration(x.keptMS) * time.Millisecond).UnixNano()
	}
	return s.redeemed.unpack(k, x)
}
