package node

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// drawn is tickets on their way to visitors.
type drawn struct {
	ranges []ticket.Range
	used   uint64 // of the first
}

// next returns one of them.
func (d *drawn) next() (g gotten, ok bool) {
	if len(d.ranges) == 0 {
		return g, false
	}
	g.ticket, g.session = d.ranges[0].Ticket(d.used), d.ranges[0].Session
	if d.used++; d.used >= d.ranges[0].N {
		d.ranges, d.used = d.ranges[1:], 0
	}
	return g, true
}

func (d *drawn) left() (n uint64) {
	for _, g := range d.ranges {
		n += g.N
	}
	return n - d.used
}

// draw takes up to n tickets for visitors of a node, into the memory of ranges. Its own visitors get tickets
// of this node as far as there are any, which need no renewals between nodes;
// others first those that their node has lent, for the same reason. Sessions whose
// anchor is out of reach come before anybody new.
func (k *counters) draw(ranges []ticket.Range, n int64, asker crdt.NodeID, now time.Time) (d drawn) {
	r := k.room
	d.ranges = ranges
	r.strand(now)
	if n <= 0 || len(r.stranded) > 0 && r.starved {
		return d
	}
	own := asker == r.core.self.Node
	if own {
		d.ranges = r.openTickets(d.ranges, n, now)
		n -= int64(d.left())
	}
	if k.leads() {
		before := d.left()
		d.ranges = k.stock().Take(d.ranges, n, asker, now)
		k.loop.supply.taken += int64(d.left() - before)
	}
	if !own {
		n -= int64(d.left())
		d.ranges = append(d.ranges, r.issue(n, now)...)
	}
	return d
}

// openTickets appends up to n own tickets that visitors of this node use at once.
func (r *Room) openTickets(to []ticket.Range, n int64, now time.Time) []ticket.Range {
	r.mu.Lock()
	n = r.rights.Open(n, now)
	session := r.rights.Session()
	r.mu.Unlock()
	r.core.storing.touch(r)
	if n <= 0 {
		return to
	}
	self := r.core.self
	first := r.core.issued.Add(uint64(n)) - uint64(n) + 1
	return append(to, ticket.Range{Anchor: self.Node, Boot: self.Boot, First: first, N: uint64(n), Session: session})
}

// prepare has the disk ready for n tickets to be given out soon.
func (r *Room) prepare(n int64, now time.Time) {
	r.mu.Lock()
	r.rights.Close(r.rights.Open(n, now))
	r.mu.Unlock()
	r.core.storing.touch(r)
}

// issue returns up to n own tickets for visitors of another node.
func (r *Room) issue(n int64, now time.Time) []ticket.Range {
	if n <= 0 {
		return nil
	}
	r.mu.Lock()
	ranges, d := r.rights.Issue(n, now)
	r.mu.Unlock()
	r.core.storing.touch(r)
	r.bookActive(d, now)
	return ranges
}

// ready returns how many tickets can be had here without anybody's help, the
// disk's included.
func (k *counters) ready(now time.Time) int64 {
	r := k.room
	r.mu.Lock()
	free := r.rights.Free()
	covered := r.rights.Covered()
	r.mu.Unlock()
	n := max(0, min(free.Places, free.Rate, covered))
	if k.leads() {
		n += k.loop.stock.Rest(now)
	}
	return n
}

// giveBackRight notes that a ticket was granted and not used. Nobody has it, and
// nobody will: its anchor hears of that.
func (r *Room) giveBackRight(t ticket.Ticket) {
	k := r.counters.Load()
	switch self := r.core.self; {
	case t.Anchor == self.Node && t.Boot == self.Boot && t.Block == 0:
		r.mu.Lock()
		r.rights.Close(1)
		r.mu.Unlock()
	case k != nil && k.loop.supply != nil:
		k.loop.supply.own().unused = append(k.loop.supply.unused, ticket.Range{Anchor: t.Anchor, Boot: t.Boot, Block: t.Block, First: t.Seq, N: 1})
	}
}

// sendLoans returns what this node tells those who have lent to it, and those who
// are to lend.
func (k *counters) sendLoans(now time.Time) (out []Message) {
	r, stock := k.room, k.loop.stock
	if stock == nil {
		return nil
	}
	if k.loop.supply == nil || !k.leads() || !r.core.fit() || r.core.leave.on {
		stock.Drop()
	}
	k.inStock.Store(stock.Rest(now))
	r.mu.Lock()
	free := r.rights.Free()
	r.mu.Unlock()
	for _, call := range stock.Due(max(0, min(free.Places, free.Rate)), now) {
		out = append(out, r.core.message(call.Lender.Node, kindLoanCall, ticket.AppendLoanCall(nil, call)))
	}
	return out
}

// takeLoanCall lends to the site's counter, and hears what became of its loans.
func (c *Core) takeLoanCall(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	call, err := ticket.DecodeLoanCall(payload)
	if err != nil {
		return nil, err
	}
	r, err := c.limited(call.Room, from, true)
	if r == nil || call.Lender != c.self {
		return nil, err // a lender that has started again counts on nothing of before
	}
	a := ticket.LoanAnswer{Room: r.id, Lender: c.self, To: crdt.Incarnation{Node: from.ID, Boot: from.Boot}}
	r.mu.Lock()
	for _, rep := range call.Reports {
		d, ok := r.rights.Reported(from.ID, rep, now)
		r.delta = r.delta.Add(d)
		if ok {
			a.Acks = append(a.Acks, ticket.ReportAck{Room: rep.Room, Lender: rep.Lender, Block: rep.Block, Number: rep.Number})
		}
	}
	if call.Borrow > 0 {
		lent := int64(0)
		if c.fit() && !c.leave.on && len(r.stranded) == 0 {
			lent = r.rights.Lend(a.To, call.Borrow, now)
		}
		if lent == 0 {
			a.Loans = append(a.Loans, ticket.Loan{Room: r.id, To: a.To, Lender: c.self}) // none to lend
		}
	}
	r.mu.Unlock()
	c.storing.touch(r)
	if len(a.Acks)+len(a.Loans) == 0 {
		return nil, nil
	}
	return []Message{c.message(from.ID, kindLoanAnswer, ticket.AppendLoanAnswer(nil, a))}, nil
}

// loansDue returns the loans that may leave now, and the word on those that shall come
// back: all of them where this node may give no tickets.
func (r *Room) loansDue(now time.Time) (out []Message) {
	c := r.core
	if !c.fit() {
		return r.recallAll(now)
	}
	r.mu.Lock()
	loans, recalls := r.rights.LoansDue(now), r.rights.Recalls(now)
	r.mu.Unlock()
	out = c.loanAnswers(recalls)
	for len(loans) > 0 {
		to, n := loans[0].To, 1
		for n < len(loans) && loans[n].To == to && n < ticket.MaxBatch {
			n++
		}
		a := ticket.LoanAnswer{Room: r.id, Lender: c.self, To: to, Loans: loans[:n]}
		out = append(out, c.message(to.Node, kindLoanAnswer, ticket.AppendLoanAnswer(nil, a)))
		loans = loans[n:]
	}
	return out
}

// recallAll wants back all that is lent, and returns the word on that.
func (r *Room) recallAll(now time.Time) []Message {
	if r.rights == nil {
		return nil
	}
	r.mu.Lock()
	r.rights.Recall()
	recalls := r.rights.Recalls(now)
	r.mu.Unlock()
	return r.core.loanAnswers(recalls)
}

func (c *Core) loanAnswers(all []ticket.LoanAnswer) (out []Message) {
	for _, a := range all {
		out = append(out, c.message(a.To.Node, kindLoanAnswer, ticket.AppendLoanAnswer(nil, a)))
	}
	return out
}

// takeLoanAnswer takes loans into stock, or lets go of them, and serves those who waited for them.
func (c *Core) takeLoanAnswer(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	a, err := ticket.DecodeLoanAnswer(payload)
	if err != nil {
		return nil, err
	}
	r, err := c.limited(a.Room, from, true)
	if r == nil || a.Lender.Node != from.ID {
		return nil, err
	}
	k := r.counters.Load()
	if k == nil || k.loop.stock == nil {
		return nil, nil
	}
	for _, ack := range a.Acks {
		k.loop.stock.Acked(ack)
	}
	k.loop.stock.Recall(a.Lender, a.Recalled, now)
	news := false
	for _, loan := range a.Loans {
		news = k.loop.stock.Add(loan, now) || news
	}
	if !news || k.loop.supply == nil {
		return nil, nil
	}
	return append(k.serveByRights(now), k.sendLoans(now)...), nil
}

// sendCancels returns the word that tickets were not used, to their anchors.
func (k *counters) sendCancels(now time.Time) (out []Message) {
	r, s := k.room, k.loop.supply
	unused := append(s.unused, k.loop.accounts.TakeVoid()...)
	if len(s.unused) > 0 {
		s.unused = nil
	}
	if len(unused) == 0 {
		return nil
	}
	for _, x := range ticket.Cancels(r.id, unused) {
		if x.Anchor == r.core.self.Node {
			r.cancel(x.Ranges, now)
			continue
		}
		out = append(out, r.core.message(r.heir(x.Anchor), kindCancel, ticket.AppendCancel(nil, x)))
	}
	return out
}

func (r *Room) cancel(unused []ticket.Range, now time.Time) {
	r.mu.Lock()
	d := r.rights.Cancel(unused, now)
	r.mu.Unlock()
	r.core.storing.touch(r)
	r.bookActive(d, now)
}

// takeCancel frees tickets of this node that nobody has used, nor will.
func (c *Core) takeCancel(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	x, err := ticket.DecodeCancel(payload)
	if err != nil {
		return nil, err
	}
	r, err := c.limited(x.Room, from, false)
	if r == nil {
		return nil, err
	}
	r.cancel(x.Ranges, now)
	return nil, nil
}
