package ticket

import "github.com/ropeline/ropeline/crdt"

// ReceivedFrom returns what has come from a node and is confirmed, all in all: to this
// node, and to those whose heir it is. It is in no order, without what is nothing.
func (r *Rights) ReceivedFrom(from crdt.NodeID) []Received {
	return r.book.disk.receivedFrom(r.cfg.Self.Node, from)
}

// ReceivedFrom returns the same of what an earlier start of a node has stored; nil if
// that cannot be read.
func ReceivedFrom(self crdt.NodeID, stored []Put, from crdt.NodeID) []Received {
	b, err := openBook(stored)
	if err != nil {
		return nil
	}
	return b.disk.receivedFrom(self, from)
}

func (l *ledger) receivedFrom(self, from crdt.NodeID) (out []Received) {
	add := func(to crdt.NodeID, got Amount) {
		if !got.IsZero() {
			out = append(out, Received{From: from, To: to, Gave: got})
		}
	}
	add(self, l.accounts[from].rcv)
	for leaver, by := range l.inherited {
		add(leaver, by[from].Rcv)
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
