package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ropeline/ropeline/bench/faults/record"
)

// History is the calls for tickets of some span of a run, checked against models
// of what they should be calls of. A call is under way from when its request was
// there until its answer left.
//
// Calls that crashed have no answer and are not in a record; whether one of them
// took a number nobody knows. The models allow for both: a number may be missing,
// and a place that was taken for nobody is a place that is free.
type History struct {
	calls []call
	known map[ticketKey]bool
	ends  map[seat]int64
	from  int64 // of the span
	until int64
}

// call is one call that brought a ticket.
type call struct {
	start
	block  uint32
	seq    uint64
	seat   seat
	called int64
	at     int64
}

type ticketKey struct {
	start
	seq uint64
}

// NewHistory returns a history of the span from one moment to another. It must
// be given the events from before as well, for as long as a session may last.
func NewHistory(from, until int64) *History {
	return &History{from: from, until: until, known: map[ticketKey]bool{}, ends: map[seat]int64{}}
}

// MaxCalls bounds the calls of a history: the search remembers a bit per call
// for each call. Later ones are left out.
const MaxCalls = 6000

// Add takes one event.
func (h *History) Add(at record.Located) {
	e := at.Event
	k := seat{e.Room, e.Visitor}
	id := ticketKey{start{e.Room, e.Anchor, e.Boot}, e.Seq}
	_, in := h.ends[k]
	switch {
	case e.Kind > record.Borrowed || e.Called() > h.until:
		return
	case e.At >= h.from && e.Kind != record.Renewed && !h.known[id]:
		if len(h.calls) == MaxCalls {
			h.until = min(h.until, e.Called())
			return
		}
		h.known[id] = true
		h.calls = append(h.calls, call{id.start, e.Block, e.Seq, k, e.Called(), e.At})
	case e.At >= h.from && !in:
		return // of a call that was left out
	}
	h.ends[k] = max(h.ends[k], e.Ends())
}

// Calls returns how many calls there are.
func (h *History) Calls() int { return len(h.calls) }

// Verdict is what a search came to.
type Verdict struct {
	OK      bool
	Unknown bool // it took too long
	Why     string
}

// searchTime bounds one search.
const searchTime = 20 * time.Second

func verdict(what string, r porcupine.CheckResult) Verdict {
	switch r {
	case porcupine.Ok:
		return Verdict{OK: true}
	case porcupine.Unknown:
		return Verdict{Unknown: true, Why: what + ": no order of the calls was found or excluded in time"}
	}
	return Verdict{Why: what + ": no order of the calls explains the answers"}
}

// Numbers checks that the tickets of each block, or of the rest of a start, are
// what a counter hands out that goes up with every call.
func (h *History) Numbers() Verdict {
	type counter struct {
		start
		block uint32
	}
	parts := map[counter][]porcupine.Operation{}
	for i, c := range h.calls {
		k := counter{c.start, c.block}
		parts[k] = append(parts[k], porcupine.Operation{ClientId: i, Call: c.called, Return: c.at, Output: c.seq})
	}
	model := porcupine.Model{
		Init: func() any { return uint64(0) },
		Step: func(state, _, output any) (bool, any) {
			last, seq := state.(uint64), output.(uint64)
			return seq > last, seq
		},
	}
	for k, ops := range parts {
		what := fmt.Sprintf("numbers of %016x, start %d, block %d", k.anchor, k.boot, k.block)
		if v := verdict(what, porcupine.CheckOperationsTimeout(model, ops, searchTime)); !v.OK {
			return v
		}
	}
	return Verdict{OK: true}
}

// Places checks that the calls are what a store of limit places answers, from
// which every call takes one that comes back when the session is over.
func (h *History) Places(limit int) Verdict {
	rooms := map[uint32][]porcupine.Operation{}
	open := map[seat]bool{}
	for i, c := range h.calls {
		if open[c.seat] {
			continue // the session went on with another ticket
		}
		open[c.seat] = true
		rooms[c.room] = append(rooms[c.room], porcupine.Operation{ClientId: i, Call: c.called, Return: c.at, Input: take})
	}
	begin := map[uint32]int{}
	for k, end := range h.ends {
		switch {
		case end <= h.from:
			continue
		case !open[k]:
			begin[k.room]++
		}
		if end > h.until {
			end = math.MaxInt64 - 1
		}
		rooms[k.room] = append(rooms[k.room], porcupine.Operation{ClientId: len(h.calls), Call: end, Return: end + 1, Input: giveBack})
	}
	for room, ops := range rooms {
		ops = slices.DeleteFunc(ops, func(o porcupine.Operation) bool { return o.Call == math.MaxInt64-1 })
		slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		what := fmt.Sprintf("places of room %08x", room)
		if v := verdict(what, porcupine.CheckOperationsTimeout(placesModel(begin[room], limit), ops, searchTime)); !v.OK {
			return v
		}
	}
	return Verdict{OK: true}
}

type placeCall bool

const (
	take     placeCall = true
	giveBack placeCall = false
)

func placesModel(begin, limit int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return begin },
		Step: func(state, input, _ any) (bool, any) {
			taken := state.(int)
			if input.(placeCall) == take {
				return taken < limit, taken + 1
			}
			return true, taken - 1
		},
	}
}
