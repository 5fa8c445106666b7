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
// there until its answer left. Tickets of sessions that go on elsewhere are not
// among them: nobody called for those.
//
// Calls that crashed have no answer and are not in a record; whether one of them
// took a number nobody knows. The models allow for both: a number may be missing,
// and a place that was taken for nobody is a place that is free.
type History struct {
	calls []call
	known map[ticketKey]int // where it stands in calls
	ends  map[seat]int64
	apart map[seat]bool // who had no place for a while
	from  int64         // of the span
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
	return &History{from: from, until: until, known: map[ticketKey]int{}, ends: map[seat]int64{}, apart: map[seat]bool{}}
}

// MaxCalls bounds the calls of a history: the search remembers a bit per call
// for each call. Later ones are left out.
const MaxCalls = 6000

// Add takes one event. first says whether it is the first to tell of its ticket, as
// [Tickets.Add] reports.
func (h *History) Add(at record.Located, first bool) {
	e := at.Event
	k := seat{e.Room, e.Visitor}
	id := ticketKey{start{e.Room, e.Anchor, e.Boot}, e.Seq}
	i, known := h.known[id]
	_, in := h.ends[k]
	switch {
	case e.Kind > record.Borrowed || e.Called() > h.until:
		return
	case e.Kind == record.Borrowed:
		h.apart[k] = true
		return
	case e.At >= h.from && e.Kind == record.Entered && known:
		// The same answer once more, maybe to the call that came first.
		h.calls[i].called = min(h.calls[i].called, e.Called())
	case e.At >= h.from && e.Kind == record.Entered && first:
		if len(h.calls) == MaxCalls {
			h.until = min(h.until, e.Called())
			return
		}
		h.known[id] = len(h.calls)
		h.calls = append(h.calls, call{id.start, e.Block, e.Seq, k, e.Called(), e.At})
	case e.At >= h.from && !in:
		return // of a call that was left out
	}
	h.ends[k] = max(h.ends[k], e.Ends())
}

// Calls returns how many calls there are.
func (h *History) Calls() int { return len(h.calls) }

// Over reports whether no event from now on is of the span, but for those of calls
// that took longer than straggling: a history may do without any call.
func (h *History) Over(now int64) bool { return now > h.until+int64(straggling) }

const straggling = 5 * time.Second

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
	parts := map[counter][]call{}
	for _, c := range h.calls {
		k := counter{c.start, c.block}
		parts[k] = append(parts[k], c)
	}
	model := porcupine.Model{
		Init: func() any { return uint64(0) },
		Step: func(state, _, output any) (bool, any) {
			last, seq := state.(uint64), output.(uint64)
			return seq > last, seq
		},
	}
	for k, calls := range parts {
		what := fmt.Sprintf("numbers of %016x, start %d, block %d", k.anchor, k.boot, k.block)
		events, err := narrow(calls)
		if err != nil {
			return Verdict{Why: what + ": " + err.Error()}
		}
		if v := verdict(what, porcupine.CheckEventsTimeout(model, events, searchTime)); !v.OK {
			return v
		}
	}
	return Verdict{OK: true}
}

// narrow returns the history of one counter with each call as short as the
// numbers tell: it took effect after those with lower numbers had begun, and
// before those with higher ones had ended. No order that the numbers allow is
// lost by this, and a search among hundreds of calls at one time ends.
func narrow(calls []call) ([]porcupine.Event, error) {
	slices.SortFunc(calls, func(a, b call) int { return cmp.Compare(a.seq, b.seq) })
	type edge struct {
		at int64
		porcupine.Event
	}
	edges := make([]edge, 0, 2*len(calls))
	latest := 0 // the call that began last so far
	for i, c := range calls {
		if c.called > calls[latest].called {
			latest = i
		}
		if b := calls[latest]; b.called > c.at {
			return nil, fmt.Errorf("number %d was asked for %v after %d had been given", b.seq, time.Duration(b.called-c.at), c.seq)
		}
		edges = append(edges, edge{calls[latest].called, porcupine.Event{ClientId: i, Kind: porcupine.CallEvent, Id: i}})
	}
	earliest := int64(math.MaxInt64)
	for i, c := range slices.Backward(calls) {
		earliest = min(earliest, c.at)
		edges = append(edges, edge{earliest, porcupine.Event{ClientId: i, Kind: porcupine.ReturnEvent, Value: c.seq, Id: i}})
	}
	// At one moment calls begin before others end, and in the order of numbers.
	slices.SortFunc(edges, func(a, b edge) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		if a.Kind != b.Kind {
			return cmp.Compare(kindOrder(a.Kind), kindOrder(b.Kind))
		}
		return cmp.Compare(a.Id, b.Id)
	})
	events := make([]porcupine.Event, len(edges))
	for i, e := range edges {
		events[i] = e.Event
	}
	return events, nil
}

func kindOrder(k porcupine.EventKind) int {
	if k == porcupine.CallEvent {
		return 0
	}
	return 1
}

// Places checks that the calls are what a store of limit places answers, from
// which every call takes one that comes back when the session is over. Visitors
// whose session was borrowed are left out: nothing tells when they had a place.
func (h *History) Places(limit int) Verdict {
	rooms := map[uint32][]porcupine.Operation{}
	open := map[seat]bool{}
	for i, c := range h.calls {
		if open[c.seat] || h.apart[c.seat] {
			continue // the session went on with another ticket
		}
		open[c.seat] = true
		rooms[c.room] = append(rooms[c.room], porcupine.Operation{ClientId: i, Call: c.called, Return: c.at, Input: take})
	}
	begin := map[uint32]int{}
	for k, end := range h.ends {
		switch {
		case end <= h.from || h.apart[k]:
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
