package input

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Defaults of a shape that is only named.
const (
	defaultVisitors = 10_000
	defaultTime     = 30 * time.Minute
)

// step is how finely a shape is cut into spans.
const step = 10 * time.Second

// shape is a made-up crowd while it is read.
type shape struct {
	kind     string
	visitors int
	time     time.Duration
	at, in   time.Duration // of a flash
	part     float64       // of a flash
	up       time.Duration // of a ramp
}

// ParseShape reads a shape of arrivals:
//
//	uniform[:VISITORS/TIME]
//	ramp[:VISITORS/TIME][,up=TIME]
//	flash[:VISITORS/TIME][,at=TIME][,in=TIME][,part=FRACTION]
//
// Uniform is the same rate all the time. A ramp climbs from nobody, for up (the
// whole time if it is not given), and stays there. In a flash the part of the
// visitors (0.8) comes within in (1m) from at (a sixth of the time) on, and the
// rest evenly over the whole time. Without numbers it is 10000/30m.
func ParseShape(text string) (*Traffic, error) {
	s := shape{visitors: defaultVisitors, time: defaultTime, part: 0.8}
	words := strings.Split(text, ",")
	kind, size, sized := strings.Cut(words[0], ":")
	s.kind = kind
	switch kind {
	case "uniform", "ramp", "flash":
	default:
		return nil, fmt.Errorf("shape %q: there is no %q; allowed are uniform, ramp and flash, such as uniform:10000/30m", text, kind)
	}
	if sized {
		if err := s.size(size); err != nil {
			return nil, fmt.Errorf("shape %q: %w", text, err)
		}
	}
	s.at, s.in, s.up = s.time/6, min(time.Minute, s.time/6), s.time
	seen := make(map[string]bool)
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		if seen[key] {
			return nil, fmt.Errorf("shape %q: %s is given twice", text, key)
		}
		seen[key] = true
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
		return fmt.Errorf("%q is not a number of visitors: a whole number from 1 to %d, as in %s:10000/30m", visitors, MaxVisitors, s.kind)
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

// set reads key=value.
func (s *shape) set(key, value string) error {
	wrap := func(err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	}
	switch s.kind + " " + key {
	case "ramp up":
		return wrap(parseTime(&s.up, value, time.Second, s.time))
	case "flash at":
		return wrap(parseTime(&s.at, value, 0, s.time))
	case "flash in":
		return wrap(parseTime(&s.in, value, time.Millisecond, s.time))
	case "flash part":
		part, err := strconv.ParseFloat(value, 64)
		if err != nil || !(part > 0 && part <= 1) {
			return fmt.Errorf("part: %q is not a number above 0 and up to 1", value)
		}
		s.part = part
		return nil
	}
	allowed := map[string]string{"uniform": "no keys", "ramp": "up", "flash": "at, in and part"}[s.kind]
	return fmt.Errorf("%q is not a key of it: %s takes %s", key, s.kind, allowed)
}

// come returns which part of the visitors, from 0 to 1, has come by t. The
// conversions keep products from being fused with sums, which some machines do
// and some do not.
func (s *shape) come(t time.Duration) float64 {
	whole, now := s.time.Seconds(), t.Seconds()
	switch s.kind {
	case "ramp":
		// The rate is r·t/up until up and r from then on; r makes the sum 1.
		up := s.up.Seconds()
		r := 1 / (whole - up/2)
		climb := min(now, up)
		return float64(r*climb*climb/(2*up)) + float64(r*(now-climb))
	case "flash":
		burst := min(max((now-s.at.Seconds())/s.in.Seconds(), 0), 1)
		return float64((1-s.part)*now/whole) + float64(s.part*burst)
	default:
		return now / whole
	}
}

// traffic cuts the shape into spans of at most a step, and where its rate jumps.
func (s *shape) traffic() *Traffic {
	cuts := []time.Duration{s.time}
	for t := time.Duration(0); t < s.time; t += step {
		cuts = append(cuts, t)
	}
	if s.kind == "flash" {
		cuts = append(cuts, s.at, s.at+s.in)
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
