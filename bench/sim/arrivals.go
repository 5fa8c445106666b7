package sim

import (
	"iter"
	"math/rand/v2"
	"time"
)

// Arrivals says when visitors come. It is read any number of times.
type Arrivals interface {
	// Len returns how many visitors come in all.
	Len() int
	// Span returns the time by which the last one has come, from the start.
	Span() time.Duration
	// Times yields Len times from the start on, none before the one before it.
	// All chance comes from rng.
	Times(rng *rand.Rand) iter.Seq[time.Duration]
}
