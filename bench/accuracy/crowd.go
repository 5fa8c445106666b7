package accuracy

import (
	"math"
	"math/rand/v2"

	"github.com/ropeline/ropeline/node/limit"
)

// crowd is sources that ask at very different rates.
//
// The mean rate of a source is drawn from a Pareto distribution with exponent Tail, cut off
// at the thousandfold mean, and all are then scaled so that Requests come within Span. A
// source does not ask evenly: it asks in spells whose lengths are exponential with the mean
// Spell, five times as often as on average, as a Poisson process; the pauses between them
// are exponential, and four times as long. Sources begin at random points of their spells.
type crowd struct {
	Sources  int
	Requests int
	Span     limit.Millis
	Spell    limit.Millis
	Tail     float64
	Seed     uint64
}

const (
	onPart  = 5    // a source asks in one part of so many of the time
	cutRate = 1000 // times the mean
)

// slot is how finely arrivals of different sources are in order.
const slot limit.Millis = 50

// source is where a source is.
type source struct {
	rate float64 // requests per millisecond in a spell
	next float64 // when it asks next
	turn float64 // when the spell or the pause ends
	on   bool
}

// walk calls each with every request of the crowd: its source, and when it came, from 0 on.
// Requests of one source are in order, those of several within a slot are not. between is
// called before those of each slot.
func (c crowd) walk(between func(at limit.Millis), each func(source int, at limit.Millis)) {
	rng := rand.New(rand.NewPCG(c.Seed, 4))
	sources := c.draw(rng)
	const horizon = 4096 // slots
	var ring [horizon][]int32
	put := func(i int, now limit.Millis) {
		ahead := min(limit.Millis(sources[i].next)/slot-now/slot, horizon-1)
		at := (now/slot + max(ahead, 0)) % horizon
		ring[at] = append(ring[at], int32(i))
	}
	for i := range sources {
		put(i, 0)
	}
	for now := limit.Millis(0); now < c.Span; now += slot {
		between(now)
		here := ring[now/slot%horizon]
		ring[now/slot%horizon] = nil
		for _, i := range here {
			s := &sources[i]
			for s.next < float64(now+slot) && s.next < float64(c.Span) {
				each(int(i), limit.Millis(s.next))
				s.step(rng, c.Spell)
			}
			put(int(i), now+slot)
		}
		if ring[now/slot%horizon] == nil {
			ring[now/slot%horizon] = here[:0] // its memory is used again
		}
	}
}

// draw returns the sources at the beginning.
func (c crowd) draw(rng *rand.Rand) []source {
	sources := make([]source, c.Sources)
	total, mean := 0.0, c.Tail/(c.Tail-1)
	for i := range sources {
		sources[i].rate = min(math.Pow(1-rng.Float64(), -1/c.Tail), cutRate*mean)
		total += sources[i].rate
	}
	scale := float64(c.Requests) / float64(c.Span) / total
	for i := range sources {
		s := &sources[i]
		if s.rate *= scale; c.Spell == 0 {
			s.on, s.turn = true, math.Inf(1)
		} else {
			s.rate *= onPart
			s.on = rng.IntN(onPart) == 0
			s.turn = rng.ExpFloat64() * s.mean(c.Spell)
		}
		s.step(rng, c.Spell)
	}
	return sources
}

// mean returns how long the spell or pause is on average.
func (s *source) mean(spell limit.Millis) float64 {
	if s.on {
		return float64(spell)
	}
	return float64(spell) * (onPart - 1)
}

// step draws when the source asks next.
func (s *source) step(rng *rand.Rand, spell limit.Millis) {
	at := s.next
	for {
		if s.on {
			if at += rng.ExpFloat64() / s.rate; at < s.turn {
				s.next = at
				return
			}
		}
		at = s.turn
		s.on = !s.on
		s.turn += rng.ExpFloat64() * s.mean(spell)
	}
}
