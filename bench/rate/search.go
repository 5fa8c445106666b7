package rate

import "math"

// search finds the highest rate that holds by tries that other programs disturb. Such a disturbance can make a
// try fail that would have held, and hardly the reverse: so a rate holds where one of a few tries does, and
// what has failed is asked once more, later, before it is believed to be the end: as soon as a lower one holds
// where that took going down, and where the two are close.
//
//	       holds            fails
//	─────────●───────●────────○───────────▶ rate
//	        low   middle     high          until high is less than fine times low
type search struct {
	from        float64 // the rate that is asked first
	least, most float64 // what is below and above them is not asked
	fine        float64 // how many times the answer may be exceeded by a rate that does not hold; above 1
	tries       int     // of one rate, at most
	rates       int     // that are asked, at most
}

// returns is how often the search goes back to where it began, if it has ended below that: other programs that
// were at work for longer than a few tries may have gone.
const returns = 2

// run returns the highest rate that held, 0: none did. It ends with the first error of try.
func (s search) run(try func(rate float64) (held bool, err error)) (low float64, err error) {
	var known bracket
	back := 0
	rate := s.rate(s.from)
	for range s.rates {
		held, err := s.holds(rate, try)
		if err != nil {
			return known.low, err
		}
		first := held && known.low == 0
		known.take(rate, held)
		if first && known.high > 0 {
			rate = known.high // it took going down to get here
			continue
		}
		var more bool
		if rate, more = s.next(known); more {
			continue
		}
		if back++; known.low >= s.rate(s.from) || back > returns {
			break
		}
		rate = s.rate(s.from)
	}
	return known.low, nil
}

// next returns what to ask next by what is known. more is false where that is all.
func (s search) next(known bracket) (rate float64, more bool) {
	low, high := known.low, known.high
	switch {
	case low == 0:
		return s.rate(high / 2), high > s.rate(s.least)
	case high == 0:
		return s.rate(low * 2), low < s.rate(s.most)
	}
	middle := s.rate(math.Sqrt(low * high))
	if high > s.fine*low && middle > low && middle < high {
		return middle, true
	}
	return high, known.sure != high
}

// bracket is what is known so far. Invariant: low < high, where both are known.
type bracket struct {
	low  float64 // the highest rate that held; 0: none
	high float64 // the lowest above it that failed; 0: none
	sure float64 // the last one that was high, was asked again, and failed again
}

// take adds what came of a rate.
func (b *bracket) take(rate float64, held bool) {
	switch {
	case held:
		if b.low = max(b.low, rate); b.low >= b.high { // what failed before was a disturbance
			b.high = 0
		}
	case rate == b.high:
		b.sure = rate
	case b.high == 0 || rate < b.high:
		b.high = rate
	}
}

// holds reports whether a rate holds in one of the tries.
func (s search) holds(rate float64, try func(float64) (bool, error)) (held bool, err error) {
	for n := 0; n < s.tries && !held && err == nil; n++ {
		held, err = try(rate)
	}
	return held, err
}

// rate returns a rate within the bounds, in three digits.
func (s search) rate(r float64) float64 {
	r = min(max(r, s.least), s.most)
	if r <= 0 {
		return 0
	}
	digits := math.Pow(10, math.Floor(math.Log10(r))-2)
	return math.Round(r/digits) * digits
}
