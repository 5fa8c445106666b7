//go:build faults && linux

package main

import (
	"encoding/binary"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/server"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/ticket"
	"github.com/ropeline/ropeline/transport"
)

// faults is what this build, which is for fault tests alone, does to itself.
type faults struct {
	record string
	skew   time.Duration
	writer *record.Writer // nil: nothing is put on record
}

func (f *faults) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.record, "fault-record", "", "`file` to be made, for every ticket that a visitor is given")
	fs.DurationVar(&f.skew, "fault-clock-skew", 0, "what the wall clock is ahead by")
}

// seams returns where the faults stand in a node.
func (f *faults) seams() (to server.Seams) {
	if f.skew != 0 {
		to.Clock = func() time.Time { return time.Now().Add(f.skew) }
	}
	if f.writer != nil {
		to.Rooms = func(of httpfront.Rooms, now func() time.Time) httpfront.Rooms {
			return &watchedRooms{of, f.writer, now}
		}
		to.Links = func(of node.Mesh) node.Mesh { return watchedLinks{of, f.writer} }
	}
	return to
}

// open opens the record, if there shall be one.
func (f *faults) open() (err error) {
	if f.record != "" {
		f.writer, err = record.Create(f.record)
	}
	return err
}

// watchedRooms puts what rooms grant on record, before the answer leaves. It is used by
// pointer: rooms are compared.
type watchedRooms struct {
	httpfront.Rooms
	record *record.Writer
	clock  func() time.Time
}

func (r *watchedRooms) Route(host, path string) httpfront.Room {
	room := r.Rooms.Route(host, path)
	if room == nil {
		return nil
	}
	return watchedRoom{room, r}
}

type watchedRoom struct {
	httpfront.Room
	to *watchedRooms
}

func (r watchedRoom) Decide(p node.Pass, known bool, now time.Time) node.Verdict {
	called := record.Now()
	v := r.Room.Decide(p, known, now)
	if v.Admit && v.SetPass && v.Pass.Accepted() {
		kind := record.Entered
		switch {
		case v.Pass.Borrowed:
			kind = record.Borrowed // at every renewal as well: the pass does not tell when it is repaid
		case known && p.Accepted() && p.Ticket == v.Pass.Ticket:
			kind = record.Renewed
		case known && p.Accepted() && p.Visitor == v.Pass.Visitor:
			kind = record.Reanchored
		}
		r.add(kind, v.Pass, called)
	}
	return v
}

func (r watchedRoom) End(p node.Pass, now time.Time) bool {
	is := r.Room.End(p, now)
	if is && p.Accepted() { // of a pass that waited it is not known here whose session it was
		p.LeaseEnd = r.to.clock()
		r.add(record.Ended, p, record.Now())
	}
	return is
}

// add reads both clocks as late as possible: a process that is stopped before
// it has granted nothing yet.
func (r watchedRoom) add(kind record.Kind, p node.Pass, called int64) {
	e := record.Event{
		Kind:    kind,
		Room:    binary.BigEndian.Uint32(p.Room[:]),
		Anchor:  binary.BigEndian.Uint64(p.Ticket.Anchor[:]),
		Boot:    uint32(p.Ticket.Boot),
		Block:   p.Ticket.Block,
		Seq:     p.Ticket.Seq,
		Visitor: binary.BigEndian.Uint64(p.Visitor[:]),
		Left:    p.LeaseEnd.Sub(r.to.clock()),
		At:      record.Now(),
	}
	e.Took = time.Duration(e.At - called)
	r.to.record.Add(e)
}

// watchedLinks puts transfers of rights on record before they leave. Both kinds
// of message tell all that one node ever gave another, so that one that is sent
// again says nothing new, and one that is lost nothing that the next does not.
type watchedLinks struct {
	node.Mesh
	record *record.Writer
}

// Kinds of messages of package node.
const (
	kindTransfer = 15
	kindReceived = 16
)

func (l watchedLinks) Send(to transport.PeerID, kind uint8, slot uint64, message []byte) {
	switch kind {
	case kindTransfer:
		if t, err := ticket.DecodeTransfer(message); err == nil {
			l.add(record.Gave, t.Room, t.From, t.To, t.Gave)
		}
	case kindReceived:
		// That of a handover tells of all that its sender ever had.
		if a, err := ticket.DecodeReceived(message); err == nil && !a.Handover {
			l.add(record.Received, a.Room, a.From, a.To, a.Gave)
		}
	}
	l.Mesh.Send(to, kind, slot, message)
}

func (l watchedLinks) add(kind record.Kind, room crdt.RoomID, from, to crdt.NodeID, so ticket.Amount) {
	move := record.Move{
		From: binary.BigEndian.Uint64(from[:]), To: binary.BigEndian.Uint64(to[:]),
		Places: so.Places, Rate: so.Rate,
	}
	e := move.Event(kind, binary.BigEndian.Uint32(room[:]))
	e.At = record.Now()
	l.record.Add(e)
}
