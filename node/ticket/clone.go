package ticket

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/packed"
)

// Clone returns a copy that shares nothing that changes, for searches that go on from one
// state in several ways. Its tickets have numbers of their own. It copies what a ledger has
// without visitors who come back: with loans, claims or borrowed sessions it panics.
func (r *Rights) Clone() *Rights {
	if len(r.loans.open)+len(r.leases.claims)+len(r.debts.ends)+len(r.debts.line) > 0 {
		panic("ticket: rights with loans, claims or borrowed sessions are not copied")
	}
	c := *r
	next := c.leases.newest + 1
	c.cfg.Seqs = func(n uint64) uint64 { next += n; return next - n }
	c.leases = r.leases.clone(&c.cfg.Self)
	c.book = r.book.clone()
	c.use.cooling.steps = slices.Clone(r.use.cooling.steps)
	if r.rare == noRare {
		return &c
	}
	rare := *r.rare
	rare.out.gifts, rare.out.acks = slices.Clone(r.out.gifts), slices.Clone(r.out.acks)
	rare.estate, rare.keepers, rare.taking = slices.Clone(r.estate), maps.Clone(r.keepers), maps.Clone(r.taking)
	c.rare = &rare
	return &c
}

func (b *book) clone() book {
	c := *b
	c.disk, c.next = b.disk.clone(), b.next.clone()
	c.dirty, c.flying = maps.Clone(b.dirty), slices.Clone(b.flying)
	return c
}

func (l *Leases) clone(self *crdt.Incarnation) *Leases {
	c := *l
	c.self, c.expiry, c.leases, c.claims, c.claimed = self, timers[uint64]{}, nil, nil, timers[Ticket]{}
	if l.leases != nil {
		c.leases = new(packed.Table[seqKey, lease])
		for seq, own := range l.leases.All() {
			*c.leases.Add(seq) = *own
			key := uint64(seq)
			if own.end().provisional() {
				key |= whileProvisional
			}
			c.expiry.push(own.end().ms(), key)
		}
	}
	c.blocks = nil
	for _, b := range l.blocks {
		copied := *b
		c.blocks = append(c.blocks, &copied)
	}
	return &c
}

// AppendState appends all by which this ledger goes on at now to dst, with times counted
// from now: two that append the same do the same from then on. What has ended is left out,
// and ticket numbers, as nobody comes back with one; see Clone. So is when a message is sent
// again: it is for searches in which one that was sent may arrive at any time.
func (r *Rights) AppendState(dst []byte, now time.Time) []byte {
	s := state{dst, now.UnixMilli(), r.elapsed(now)}
	s.book(&r.book)
	s.num(int64(r.cfg.Self.Boot))
	s.flag(r.limit.known)
	s.amount(r.limit.limit)
	s.amount(r.limit.others)
	s.id(r.limit.minter)
	s.num(max(0, r.limit.mintAfter-now.UnixNano()))
	s.num(r.use.tokens)
	for _, c := range r.use.cooling.steps {
		if c.at > s.elapsed {
			s.num(c.at - s.elapsed)
			s.num(c.n)
		}
	}
	p := &r.use.pace
	s.num(min(2, s.elapsed/1000-p.second))
	for _, n := range []int64{p.now, p.last, p.asked, p.before} {
		s.num(n)
	}
	s.num(max(0, r.use.lowered+lowerEvery-s.elapsed))
	s.num(r.span.session)
	s.num(max(0, r.span.until-s.now))
	s.leases(r.leases)
	s.rare(r.rare)
	return s.out
}

// state writes what a ledger is at one moment.
type state struct {
	out          []byte
	now, elapsed int64 // ms: of the clock, and since the start
}

func (s *state) num(n int64)       { s.out = binary.AppendVarint(s.out, n) }
func (s *state) id(id crdt.NodeID) { s.out = append(s.out, id[:]...) }
func (s *state) amount(a Amount)   { s.num(a.Places); s.num(a.Rate) }
func (s *state) text(b []byte)     { s.num(int64(len(b))); s.out = append(s.out, b...) }
func (s *state) list(n int)        { s.num(int64(n)) }
func (s *state) resend(x resend)   { s.num(max(0, x.next-s.elapsed)); s.num(int64(x.tries)) }
func (s *state) ids(a []crdt.NodeID) {
	s.list(len(a))
	for _, id := range a {
		s.id(id)
	}
}

func (s *state) flag(on bool) {
	if on {
		s.out = append(s.out, 1)
	} else {
		s.out = append(s.out, 0)
	}
}

func (s *state) puts(all []Put) {
	s.list(len(all))
	for _, p := range all {
		s.text([]byte(p.Key))
		s.text(p.Value)
	}
}

func (s *state) book(b *book) {
	s.puts(b.stored())
	s.puts(b.flying)
	keys := slices.Sorted(maps.Keys(b.dirty))
	s.list(len(keys))
	for _, k := range keys {
		s.text([]byte(k))
	}
	for _, k := range b.next.keys() {
		s.text([]byte(k))
		s.text(b.next.value(k))
	}
	s.flag(b.failed)
	s.amount(b.leastBound)
	s.amount(b.leastMinted)
	s.num(b.leastSpan)
}

func (s *state) leases(l *Leases) {
	s.num(l.session)
	s.num(l.longest)
	var ends []int64
	if l.leases != nil {
		for _, own := range l.leases.All() {
			ends = append(ends, max(-Guard.Milliseconds()-1, own.end().ms()-s.now)*2+int64(own.end()&1))
		}
	}
	slices.Sort(ends)
	s.list(len(ends))
	for _, e := range ends {
		s.num(e)
	}
	s.list(len(l.blocks))
	for _, b := range l.blocks {
		s.ids(b.anchors)
		for _, n := range []int64{int64(b.boot), int64(b.size), b.end - s.now, int64(b.claims), int64(b.extra)} {
			s.num(n)
		}
	}
	s.num(int64(l.loose))
}

func (s *state) rare(r *rare) {
	s.list(len(r.out.gifts))
	for _, g := range r.out.gifts {
		s.id(g.to)
		s.amount(g.gave)
		s.resend(g.resend)
	}
	acks := slices.SortedFunc(slices.Values(r.out.acks), func(a, b Received) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To), cmp.Compare(a.Gave.Places, b.Gave.Places), cmp.Compare(a.Gave.Rate, b.Gave.Rate))
	})
	s.list(len(acks))
	for _, a := range acks {
		s.id(a.From)
		s.id(a.To)
		s.amount(a.Gave)
		s.flag(a.Handover)
	}
	s.resend(r.out.hand)
	s.flag(r.left)
	s.ids(r.estate)
	s.amount(r.estateSum)
	for _, id := range slices.SortedFunc(maps.Keys(r.keepers), crdt.NodeID.Compare) {
		s.id(id)
		s.id(r.keepers[id])
	}
	for _, id := range slices.SortedFunc(maps.Keys(r.taking), crdt.NodeID.Compare) {
		s.id(id)
		s.text(AppendFinal(nil, r.taking[id].final))
		s.num(r.taking[id].rate)
	}
}
