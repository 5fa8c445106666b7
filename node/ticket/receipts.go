package ticket

import (
	"cmp"

	"github.com/ropeline/ropeline/crdt"
)

// Inquiry asks for receipts behind that of To in Room, in the order of Compare; zero:
// for all.
type Inquiry struct {
	Room crdt.RoomID
	To   crdt.NodeID
}

// Compare orders by room, then by who has received.
func (q Inquiry) Compare(other Inquiry) int {
	return cmp.Or(q.Room.Compare(other.Room), q.To.Compare(other.To))
}

// Receipts answers an Inquiry: what a node, and those whose heir it is, have received from
// whoever asks, all in all.
type Receipts struct {
	Behind Inquiry
	Known  bool       // who asks has owned rights before, or may have
	More   bool       // there is more behind the last of Items
	Items  []Received // in order, at most MaxReceipts; From is left to the caller
}

// Place returns where a receipt stands in the order.
func (a Received) Place() Inquiry { return Inquiry{a.Room, a.To} }

// MaxReceipts is how many go into one message: one takes 63 bytes at most, and messages
// have 256 KiB.
const MaxReceipts = 4000

// minReceipt is the least that one receipt takes: two ids, an amount and a code.
const minReceipt = 2 + 16 + 2 + 16 + 2 + 1

func (w writer) inquiry(q Inquiry) {
	w.keep(w.enc.EncodeBytes(q.Room[:]))
	w.keep(w.enc.EncodeBytes(q.To[:]))
}

func (r *reader) inquiry() (q Inquiry) {
	r.id(q.Room[:])
	r.id(q.To[:])
	return q
}

// AppendInquiry appends the encoding of q to dst.
func AppendInquiry(dst []byte, q Inquiry) []byte {
	w := newBareWriter(dst, transferVersion)
	w.inquiry(q)
	return w.buf.Bytes()
}

// DecodeInquiry takes apart what AppendInquiry wrote. A message that is not well formed
// is an error that wraps ErrMalformed.
func DecodeInquiry(message []byte) (Inquiry, error) {
	return takeApart("inquiry", message, func(r *reader, q *Inquiry) { *q = r.inquiry() })
}

// AppendReceipts appends the encoding of a to dst.
func AppendReceipts(dst []byte, a Receipts) []byte {
	w := newBareWriter(dst, transferVersion)
	w.inquiry(a.Behind)
	w.flag(a.Known)
	w.flag(a.More)
	w.count(len(a.Items), MaxReceipts)
	for _, x := range a.Items {
		w.inquiry(x.Place())
		w.amount(x.Gave)
		w.code(x.Code)
	}
	return w.buf.Bytes()
}

// DecodeReceipts takes apart what AppendReceipts wrote. A message that is not well
// formed is an error that wraps ErrMalformed.
func DecodeReceipts(message []byte) (Receipts, error) {
	return takeApart("receipts", message, func(r *reader, a *Receipts) {
		a.Behind, a.Known, a.More = r.inquiry(), r.flag(), r.flag()
		for range r.atMost(MaxReceipts, minReceipt) {
			at := r.inquiry()
			a.Items = append(a.Items, Received{Room: at.Room, To: at.To, Gave: r.amount(), Code: r.code()})
		}
	})
}

// ReceivedFrom returns what has come from a node and is confirmed, all in all: to this
// node, and to those whose heir it is. It is in no order, without what is nothing.
func (r *Rights) ReceivedFrom(from crdt.NodeID) []Received {
	return r.book.disk.receivedFrom(r.cfg.Room, r.cfg.Self.Node, from)
}

// ReceivedFrom returns the same of what an earlier start of a node has stored of a room;
// nil if that cannot be read.
func ReceivedFrom(room crdt.RoomID, self crdt.NodeID, stored []Put, from crdt.NodeID) []Received {
	b, err := openBook(stored)
	if err != nil {
		return nil
	}
	return b.disk.receivedFrom(room, self, from)
}

func (l *ledger) receivedFrom(room crdt.RoomID, self, from crdt.NodeID) (out []Received) {
	add := func(to crdt.NodeID, got Amount, code Code) {
		if !got.IsZero() {
			out = append(out, Received{Room: room, From: from, To: to, Gave: got, Code: code})
		}
	}
	add(self, l.accounts[from].rcv, l.accounts[from].code)
	for leaver, by := range l.inherited {
		add(leaver, by[from].Rcv, by[from].Code)
	}
	return out
}

// GaveTo returns what this node has given another, all in all.
func (r *Rights) GaveTo(to crdt.NodeID) Amount { return r.book.next.accounts[to].gave }

// GaveTo returns the same of what an earlier start has stored; nothing if that cannot
// be read.
func GaveTo(stored []Put, to crdt.NodeID) Amount {
	b, err := openBook(stored)
	if err != nil {
		return Amount{}
	}
	return b.disk.accounts[to].gave
}
