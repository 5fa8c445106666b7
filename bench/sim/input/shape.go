package input

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// step is how finely a shape is cut into spans.
const step = 10 * time.Second

// shape is a made-up crowd: a part of it comes within in from at on, and the others
// evenly over the whole time. For one that is uniform throughout, the part is 0.
type shape struct {
	visitors int
	time     time.Duration
	at, in   time.Duration
	part     float64
}

// ParseShape reads a shape of arrivals:
//
//	uniform:VISITORS/TIME
//	flash:VISITORS/TIME[,at=TIME][,in=TIME][,part=FRACTION]
//
// Uniform is the same rate all the time. In a flash the part of the visitors (0.8)
// comes within in (1m) from at (a sixth of the time) on, and the rest evenly over the
// whole time.
func ParseShape(text string) (*Traffic, error) {
	words := strings.Split(text, ",")
	kind, size, _ := strings.Cut(words[0], ":")
	var s shape
	if err := s.size(size); err != nil {
		return nil, fmt.Errorf("shape %q: %w", text, err)
	}
	switch kind {
	case "uniform":
		s.in = s.time
		if len(words) > 1 {
			return nil, fmt.Errorf("shape %q: uniform takes no keys", text)
		}
	case "flash":
		s.at, s.in, s.part = s.time/6, min(time.Minute, s.time/6), 0.8
	default:
		return nil, fmt.Errorf("shape %q: there is no %q; allowed are uniform and flash, such as uniform:10000/30m", text, kind)
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		if err := s.set(key, value); err != nil {
			return nil, fmt.Errorf("shape %q: %w", text, err)
		}
	}
	if s.at+s.in > s.time {
		return nil, fmt.Errorf("shape %q: at=%s and in=%s end after the %s that the shape takes", text, s.at, s.in, s.time)
	}
	return s.traffic(), nil
}

// size reads VISITORS/TIME.
func (s *shape) size(text string) error {
	visitors, length, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(visitors)
	if err != nil || n < 1 || n > MaxVisitors {
		return fmt.Errorf("%q is not a number of visitors: a whole number from 1 to %d, as in uniform:10000/30m", visitors, MaxVisitors)
	}
	s.visitors = n
	return parseTime(&s.time, length, time.Second, MaxTime)
}

func parseTime(dst *time.Duration, text string, least, most time.Duration) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return fmt.Errorf("%q is not a time from %s to %s, such as 30m", text, least, most)
	}
	*dst = d
	return nil
}

// set reads key=value of a flash.
func (s *shape) set(key, value string) (err error) {
	switch key {
	case "at":
		err = parseTime(&s.at, value, 0, s.time)
	case "in":
		err = parseTime(&s.in, value, time.Millisecond, s.time)
	case "part":
		s.part, err = strconv.ParseFloat(value, 64)
		if err != nil || !(s.part > 0 && s.part <= 1) {
			err = fmt.Errorf("%q is not a number above 0 and up to 1", value)
		}
	default:
		return fmt.Errorf("%q is not a key of it: flash takes at, in and part", key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// come returns which part of the visitors, from 0 to 1, has come by t. The
// conversions keep products from being fused with sums, which some machines do
// and some do not.
func (s *shape) come(t time.Duration) float64 {
	burst := min(max((t.Seconds()-s.at.Seconds())/s.in.Seconds(), 0), 1)
	return float64((1-s.part)*t.Seconds()/s.time.Seconds()) + float64(s.part*burst)
}

// traffic cuts the shape into spans of at most a step, and where its rate jumps.
func (s *shape) traffic() *Traffic {
	cuts := []time.Duration{s.at, s.at + s.in, s.time}
	for t := time.Duration(0); t < s.time; t += step {
		cuts = append(cuts, t)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	t := &Traffic{spans: make([]span, 0, len(cuts)-1)}
	before := 0
	for i, from := range cuts[:len(cuts)-1] {
		upTo := int(math.Round(float64(s.visitors) * s.come(cuts[i+1])))
		t.spans = append(t.spans, span{from: from, length: cuts[i+1] - from, visitors: upTo - before})
		before = upTo
	}
	return t
}
