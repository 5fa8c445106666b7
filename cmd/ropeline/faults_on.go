//go:build faults && linux

package main

import (
	"encoding/binary"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/node"
)

// faults is what this build, which is for fault tests alone, does to itself.
type faults struct {
	record string
	skew   time.Duration
}

func (f *faults) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.record, "fault-record", "", "`file` to be made, for every ticket that a visitor is given")
	fs.DurationVar(&f.skew, "fault-clock-skew", 0, "what the wall clock is ahead by")
}

// clock returns a wall clock that is off by skew from the start on.
func (f *faults) clock() func() time.Time {
	if f.skew == 0 {
		return nil
	}
	return func() time.Time { return time.Now().Add(f.skew) }
}

// watch returns rooms whose grants are on record.
func (f *faults) watch(rooms httpfront.Rooms) (httpfront.Rooms, error) {
	if f.record == "" {
		return rooms, nil
	}
	w, err := record.Create(f.record)
	if err != nil {
		return nil, err
	}
	clock := f.clock()
	if clock == nil {
		clock = time.Now
	}
	return watchedRooms{rooms, w, clock}, nil
}

// watchedRooms puts what rooms grant on record, before the answer leaves.
type watchedRooms struct {
	httpfront.Rooms
	record *record.Writer
	clock  func() time.Time
}

func (r watchedRooms) Route(host, path string) httpfront.Room {
	room := r.Rooms.Route(host, path)
	if room == nil {
		return nil
	}
	return watchedRoom{room, r}
}

type watchedRoom struct {
	httpfront.Room
	to watchedRooms
}

func (r watchedRoom) Decide(p node.Pass, known bool, now time.Time) node.Verdict {
	called := record.Now()
	v := r.Room.Decide(p, known, now)
	if v.Admit && v.SetPass && v.Pass.Accepted() {
		kind := record.Entered
		switch {
		case known && p.Accepted() && p.Ticket == v.Pass.Ticket:
			kind = record.Renewed
		case known && p.Accepted() && p.Visitor == v.Pass.Visitor:
			kind = record.Reanchored
		}
		r.add(kind, v.Pass, called)
	}
	return v
}

func (r watchedRoom) End(p node.Pass, now time.Time) {
	r.Room.End(p, now)
	p.LeaseEnd = r.to.clock()
	r.add(record.Ended, p, record.Now())
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
