package crdt

import "time"

// TickSpan is the span over which traffic history is counted.
const TickSpan = 10 * time.Second

// Kind says what a cell counts.
type Kind uint8

const (
	// Active counts leases: P when one starts, N when it ends, in the row of
	// the anchor. Its cells have Tick 0.
	Active Kind = iota + 1
	// Waiting counts visitors who wait, by the span in which they arrived. Tick
	// is the start of that span in Unix seconds.
	Waiting
	// Seen counts distinct visitors who tried to get in. Tick is Unix time
	// divided by TickSpan.
	Seen
	// Admitted counts tickets used. Tick is Unix time divided by TickSpan.
	Admitted
	// Held is how many rights to places a node owns, in use or not, and HeldRate
	// how many rights to admissions per minute: P − N. Their cells have Tick 0.
	Held
	HeldRate

	lastKind = HeldRate
)

// timeless reports whether cells of a kind have no tick but 0.
func (k Kind) timeless() bool { return k == Active || k == Held || k == HeldRate }

// Key names one cell of a row.
type Key struct {
	Room RoomID
	Kind Kind
	Tick int64
}

// Cell is a pair of counts that only grow. The zero value counts nothing.
type Cell struct {
	P, N uint64
}

// Value returns P − N.
func (c Cell) Value() int64 { return int64(c.P - c.N) }

// TickOf returns the tick that t falls into.
func TickOf(t time.Time) int64 { return t.Unix() / int64(TickSpan/time.Second) }

// Counts is what one site, or one node, holds of one room. Nil maps are empty.
type Counts struct {
	Active   int64
	Orphans  int64           // of Active: of owners whose rights are not counted any more; not in summaries
	Held     int64           // rights to places
	HeldRate int64           // rights to admissions per minute
	Waiting  map[int64]int64 // start of the span in Unix seconds → visitors
	Seen     map[int64]int64 // tick → visitors
	Admitted map[int64]int64 // tick → visitors
}

// Reset empties c and keeps its memory.
func (c *Counts) Reset() {
	c.Active, c.Orphans, c.Held, c.HeldRate = 0, 0, 0, 0
	clear(c.Waiting)
	clear(c.Seen)
	clear(c.Admitted)
}
