package ticket

import (
	"bytes"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

const (
	// An unacknowledged gift is sent again after giftResend, then ever more
	// seldom up to giftResendMost.
	giftResend     = 250 * time.Millisecond
	giftResendMost = 4 * time.Second
)

// outbox is what goes to other nodes. Times are elapsed ms.
type outbox struct {
	gifts []gift // of all nodes that have not acknowledged everything, by node
	acks  []Received
	hand  resend
}

// gift is what one node was given all in all and has not acknowledged.
type gift struct {
	to   crdt.NodeID
	gave Amount
	resend
}

// resend says when something is sent next. The zero value: at once.
type resend struct {
	next  int64
	tries int
}

// due reports whether it is time, and if so sets the next.
func (s *resend) due(now int64) bool {
	if now < s.next {
		return false
	}
	s.next = now + min(ms(giftResend)<<min(s.tries, 8), ms(giftResendMost))
	s.tries++
	return true
}

// open has everything that was ever given sent once: nobody knows any more what
// of it arrived.
func (o *outbox) open(l *ledger) {
	for id, a := range l.accounts {
		_, closed := l.closed[id]
		_, here := l.taken[id]
		if !closed && !here && !a.gave.IsZero() {
			o.gave(id, a.gave)
		}
	}
	if l.leaving != nil {
		o.gave(l.leaving.heir, l.accounts[l.leaving.heir].gave)
	}
}

func (o *outbox) find(to crdt.NodeID) (int, bool) {
	return slices.BinarySearchFunc(o.gifts, to, func(g gift, id crdt.NodeID) int { return bytes.Compare(g.to[:], id[:]) })
}

// gave says how much a node was given all in all.
func (o *outbox) gave(to crdt.NodeID, sum Amount) {
	i, known := o.find(to)
	if !known {
		o.gifts = slices.Insert(o.gifts, i, gift{to: to})
	}
	o.gifts[i].gave, o.gifts[i].resend = sum, resend{}
}

// drop has nothing more sent to a node.
func (o *outbox) drop(to crdt.NodeID) {
	if i, known := o.find(to); known {
		o.gifts = slices.Delete(o.gifts, i, i+1)
	}
}

// Give gives up to a of what is free to another node and returns how much. It is
// gone at once, and sent by TransfersDue once it is written.
func (r *Rights) Give(to crdt.NodeID, a Amount, now time.Time) Amount {
	a = a.Min(r.physical(now)).Max(Amount{})
	if r.stopped() || r.answersFor(to) || r.fenced(to) || r.closed(to) || len(r.debts.ends) > 0 || a.IsZero() {
		return Amount{}
	}
	x := r.book.next.accounts[to]
	x.gave = x.gave.Add(a)
	set(&r.book.next.own().accounts, to, x)
	r.mark(keyOf(keyGave, to))
	if r.cfg.LeaveOut&GiveBeforeSend != 0 {
		r.ownRare().out.gave(to, x.gave)
	}
	return a
}

// GiftDue reports whether TransfersDue may return a gift.
func (r *Rights) GiftDue(now time.Time) bool {
	elapsed := r.elapsed(now)
	return slices.ContainsFunc(r.out.gifts, func(g gift) bool { return elapsed >= g.next && r.sends(g.to) })
}

// sends reports whether gifts go to a node.
func (r *Rights) sends(to crdt.NodeID) bool {
	return !r.book.failed && !r.refused(to) && !r.handed(to)
}

// TransfersDue returns the gifts to be sent now, to whoever answers for To, until
// they are acknowledged.
func (r *Rights) TransfersDue(now time.Time) []Transfer {
	var out []Transfer
	for i := range r.out.gifts {
		g := &r.out.gifts[i]
		if !r.sends(g.to) || !g.due(r.elapsed(now)) {
			continue
		}
		out = append(out, Transfer{Room: r.cfg.Room, From: r.cfg.Self.Node, To: g.to, Gave: g.gave, Code: r.cfg.Code(r.cfg.Room, g.to, g.gave)})
	}
	return out
}

// handed reports whether everything goes to that node in a Handover.
func (r *Rights) handed(to crdt.NodeID) bool {
	l := r.book.next.leaving
	return l != nil && l.heir == to
}

// Acked takes an acknowledgement of a Transfer or Handover of this node.
func (r *Rights) Acked(a Received) {
	i, known := r.out.find(a.To)
	if !known || a.From != r.cfg.Self.Node || r.out.gifts[i].gave.Max(a.Gave) != a.Gave {
		return
	}
	if r.handed(a.To) && !a.Handover {
		return
	}
	r.out.gifts = slices.Delete(r.out.gifts, i, i+1)
	r.left = r.left || r.handed(a.To) // rare is this node's own: the gift was in it
}

// Receive takes a gift to this node or to one whose heir it is. It counts, and is
// acknowledged, once it is written.
func (r *Rights) Receive(t Transfer, now time.Time) {
	if r.book.next.leaving != nil || t.From == r.cfg.Self.Node {
		return
	}
	if !r.credit(t) {
		return
	}
	if ack := (Received{Room: t.Room, From: t.From, To: t.To, Gave: t.Gave}); !slices.Contains(r.out.acks, ack) && len(r.out.acks) < maxAcks {
		r.ownRare().out.acks = append(r.out.acks, ack)
	}
}

// maxAcks bounds the acknowledgements that wait for their write. Of what is not
// acknowledged the giver speaks again.
const maxAcks = 1024

// sane reports whether a cumulative amount can be one.
func sane(a Amount) bool {
	return a.Places >= 0 && a.Rate >= 0 && a.Places <= maxRights && a.Rate <= maxRights
}

// credit books a gift. It reports whether it is for this node to do so.
func (r *Rights) credit(t Transfer) bool {
	return !r.fenced(t.From) && r.accept(t.From, t.To, t.Gave, t.Code)
}

// accept books what from has given to, all in all, whoever it is.
func (r *Rights) accept(from, to crdt.NodeID, sum Amount, code Code) bool {
	next := &r.book.next
	if !sane(sum) || to == r.cfg.Self.Node && r.closed(from) {
		return false
	}
	if to == r.cfg.Self.Node {
		x := next.accounts[from]
		if more := x.rcv.Max(sum); more != x.rcv {
			x.rcv, x.code = more, code.of(sum, more)
			set(&next.own().accounts, from, x)
			r.mark(keyOf(keyRcv, from))
		}
		return true
	}
	if !r.answersFor(to) {
		return false
	}
	x := next.inherited[to][from]
	if more := x.Rcv.Max(sum); more != x.Rcv {
		x.From, x.Rcv, x.Code = from, more, code.of(sum, more)
		next.inherit(to, x)
		r.mark(keyOf(keyInherited, to, from))
	}
	return true
}

// AcksDue returns the acknowledgements to be sent to their From, each once.
func (r *Rights) AcksDue(now time.Time) []Received {
	if len(r.out.acks) == 0 {
		return nil
	}
	var out []Received
	r.out.acks = slices.DeleteFunc(r.out.acks, func(a Received) bool {
		if r.cfg.LeaveOut&ReceiveBeforeUse == 0 && !r.holds(a) {
			return false
		}
		out = append(out, a)
		return true
	})
	return out
}

// holds reports whether what an acknowledgement says is written.
func (r *Rights) holds(a Received) bool {
	got := r.book.disk.accounts[a.From].rcv
	if a.To != r.cfg.Self.Node {
		got = r.book.disk.inherited[a.To][a.From].Rcv
	}
	_, taken := r.book.disk.taken[a.From]
	return got.Max(a.Gave) == got && (!a.Handover || taken)
}

// of returns the code of rcv, if it is that of sum.
func (c Code) of(sum, rcv Amount) Code {
	if sum != rcv {
		return 0 // of two ledgers that neither have it so
	}
	return c
}
