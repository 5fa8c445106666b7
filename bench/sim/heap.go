package sim

// kind says what an event is. The numbers do not order anything.
type kind uint8

const (
	arrives   kind = iota // the next visitor comes
	acts                  // a visitor does what is due; what: their generation
	ticks                 // a node does what is due; what: its start
	delivered             // a message arrives
	members               // a node hears who lives; what: its start
	begins                // a fault begins
	heals                 // a fault ends
	saves                 // a node writes its counts down
	wrote                 // a disk is done with something; what: the start of its node
	says                  // an operator does what a fault says
	checks                // a node learns how its clock stands to others; what: its start
	looks                 // it is seen whether the run is over
)

// event is something that will happen. It holds no pointer, so a heap of
// millions costs the garbage collector nothing.
type event struct {
	at    int64  // ns of true time since the start
	order uint64 // number of the event << 8 | kind: what was planned first comes first
	who   int32
	what  uint32
}

func (e event) kind() kind { return kind(e.order) }

func (e event) before(o event) bool {
	return e.at < o.at || e.at == o.at && e.order < o.order
}

// heap holds events and gives the earliest first. Each entry has four children,
// which makes it half as deep as a binary one: most of what is added comes late
// and stays near the bottom. The zero value is empty.
//
// Invariant: !events[i].before(events[(i-1)/4]).
type heap struct {
	events  []event
	planned uint64
}

// add plans an event.
func (h *heap) add(at int64, k kind, who int32, what uint32) {
	h.planned++
	e := event{at, h.planned<<8 | uint64(k), who, what}
	h.events = append(h.events, e)
	i := len(h.events) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(h.events[parent]) {
			break
		}
		h.events[i] = h.events[parent]
		i = parent
	}
	h.events[i] = e
}

// next removes the earliest event; ok is false if there is none.
func (h *heap) next() (e event, ok bool) {
	n := len(h.events) - 1
	if n < 0 {
		return event{}, false
	}
	e = h.events[0]
	last := h.events[n]
	h.events = h.events[:n]
	if n > 0 {
		h.sink(last)
	}
	return e, true
}

// sink puts e in at the top and lets it down to its place.
func (h *heap) sink(e event) {
	events, i := h.events, 0
	for {
		child := 4*i + 1
		if child >= len(events) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(events)); c++ {
			if events[c].before(events[least]) {
				least = c
			}
		}
		if !events[least].before(e) {
			break
		}
		events[i] = events[least]
		i = least
	}
	events[i] = e
}
