package sim

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// span is a time in which an event has other limits than the room, or none has.
type span struct {
	from, to int64
	limit    ticket.Amount // zero: the room's
}

// spansOf returns all of them, in order.
func spansOf(s *room.Settings) []span {
	turns := []int64{longAgo, never}
	for _, e := range s.Events {
		for _, t := range []time.Time{e.Start, e.End} {
			if !t.IsZero() {
				turns = append(turns, int64(t.Sub(Epoch())))
			}
		}
	}
	sortTimes(turns)
	turns = slices.Compact(turns)
	var all []span
	bare := *s
	bare.TotalActiveUsers, bare.NewUsersPerMinute = 0, 0
	for i, from := range turns[:len(turns)-1] {
		p := span{from: from, to: turns[i+1]}
		if from > longAgo {
			in, _ := bare.At(Epoch().Add(time.Duration(from)))
			p.limit = limitsOf(&in)
		}
		all = append(all, p)
	}
	return all
}

// near reports whether a node may go by this span at some time: clocks differ, and what
// follows from a lower limit takes as long as the news of one.
func (p *span) near(now int64) bool {
	return p.from-int64(clockBound) <= now && (p.to == never || now < p.to+int64(clockBound)+lingers)
}

// over returns the limits in this span of a room that has some otherwise.
func (p *span) over(limit ticket.Amount) ticket.Amount {
	if p.limit.IsZero() {
		return limit
	}
	return p.limit
}
