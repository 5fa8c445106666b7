package node

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/history"
	"github.com/ropeline/ropeline/node/ticket"
)

// past is what this node has seen and done in its rooms, minute by minute. The zero value
// keeps nothing.
type past struct {
	recorder *history.Recorder // the loop's; nil: nothing is kept
	looked   time.Time         // when all rooms were looked at
	closed   [][]byte          // minutes that were closed and that nobody has taken

	passing passing
	taking  taking
	taken   map[crdt.NodeID]time.Time // whose past this node has taken over, and when

	bytes, refused atomic.Uint64 // as Status has it
}

// pastInterval is how often rooms are looked at, for averages over a minute.
const pastInterval = time.Second

// maxClosed is how many closed minutes wait for somebody who takes them.
const maxClosed = 16

func (p *past) open(cfg *history.Config) (err error) {
	if cfg == nil {
		return nil
	}
	if p.recorder, err = history.New(*cfg); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return nil
}

// advance closes the minute before now, if that is over.
func (p *past) advance(now time.Time) {
	if !p.recorder.Advance(now) {
		return
	}
	p.bytes.Store(uint64(p.recorder.Bytes()))
	if len(p.closed) >= maxClosed {
		return
	}
	frame, err := p.recorder.AppendClosed(nil)
	if err != nil {
		panic("node: history of our own: " + err.Error()) // a buffer takes what is written
	}
	p.closed = append(p.closed, frame)
}

// tickPast looks at all rooms, if that is due.
func (c *Core) tickPast(now time.Time) {
	p := &c.past
	if p.recorder == nil || now.Sub(p.looked) < pastInterval && !now.Before(p.looked) {
		return
	}
	p.looked = now
	minutes := len(p.closed)
	p.advance(now)
	for _, r := range c.order {
		v := r.view.Load()
		if r.resting.Load() || v.Settings.Suspended {
			continue
		}
		p.recorder.See(r.id, history.Seen{
			Active: int64(v.Active), Waiting: int64(v.Waiting),
			TotalActiveUsers: int64(v.Settings.TotalActiveUsers), NewUsersPerMinute: int64(v.Settings.NewUsersPerMinute),
		}, now)
	}
	p.refused.Store(p.recorder.Refused())
	if len(p.closed) > minutes {
		c.forgetTaken(now)
		c.forgetPast()
	}
}

// forgetPast forgets rooms that are gone for good, which make room for others.
func (c *Core) forgetPast() {
	for _, id := range c.past.recorder.Rooms() {
		if c.rooms[id] == nil {
			c.past.recorder.Forget(id)
		}
	}
}

// cameHere notes somebody new who waits.
func (c *Core) cameHere(id crdt.RoomID, now time.Time) {
	if p := &c.past; p.recorder != nil {
		p.advance(now)
		p.recorder.Count(id, history.Counts{New: 1}, now)
	}
}

// letInHere notes somebody who waited and was let in.
func (c *Core) letInHere(e *entered, now time.Time) {
	if p := &c.past; p.recorder != nil {
		p.advance(now)
		p.recorder.Waited(e.room.id, e.pass.AcceptedAt.Sub(e.pass.Arrival), now)
		p.recorder.Count(e.room.id, history.Counts{Admitted: 1}, now)
	}
}

// cameAndEntered notes n new visitors who did not have to wait.
func (c *Core) cameAndEntered(id crdt.RoomID, n uint64, now time.Time) {
	if p := &c.past; p.recorder != nil && n > 0 {
		p.advance(now)
		p.recorder.Count(id, history.Counts{New: n, Admitted: n}, now)
	}
}

// endedHere notes sessions that have ended.
func (c *Core) endedHere(id crdt.RoomID, all []ticket.Ended, now time.Time) {
	if len(all) == 0 {
		return
	}
	p := &c.past
	p.advance(now)
	n := history.Counts{Ended: uint64(len(all))}
	for _, e := range all {
		if e.Revoked {
			n.Revoked++
		}
		if !e.Began.IsZero() && !e.Last.IsZero() {
			p.recorder.Stayed(id, e.Last.Sub(e.Began), now)
		}
	}
	p.recorder.Count(id, n, now)
}

// TakeHistory returns the minutes that were closed since it was last called, as
// RestoreHistory reads them.
func (c *Core) TakeHistory() [][]byte {
	all := c.past.closed
	c.past.closed = nil
	return all
}

// CloseHistory closes the minute that is open, for the last time.
func (c *Core) CloseHistory(now time.Time) {
	if c.past.recorder != nil {
		c.past.advance(now.Add(2 * time.Minute))
	}
}

// RestoreHistory takes up a minute of an earlier start. The oldest comes first, and all of
// them before anything else.
func (c *Core) RestoreHistory(frame []byte) error {
	if c.past.recorder == nil {
		return nil
	}
	if err := c.past.recorder.Restore(frame); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	c.past.bytes.Store(uint64(c.past.recorder.Bytes()))
	return nil
}

// History returns what this node, and nodes that have left to it, have seen of a room and done in it, minute by minute,
// from one moment to another, a day at most.
func (c *Core) History(q history.Question) (a history.Answer, err error) {
	if c.past.recorder == nil {
		return history.Answer{}, nil
	}
	a.Series, err = c.past.recorder.Read(q.Room, q.From, q.To)
	a.For = c.answersForPast()
	return a, err
}

// noteEnded returns what rights tell of sessions that end; nil where that is not kept. They
// tell it while mu is held.
func (r *Room) noteEnded() func(ticket.Ended) {
	if r.core.past.recorder == nil {
		return nil
	}
	return func(e ticket.Ended) { r.overHere = append(r.overHere, e) }
}
