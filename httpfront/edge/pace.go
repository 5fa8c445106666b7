package edge

import "time"

// pace watches how fast a body comes, as seen by who waits for it. What the
// receiver does in between, such as waiting for the origin, does not count.
type pace struct {
	waited time.Duration // for what follows
	got    int           // bytes
}

// paceSpan is over how many of the longest pauses the average is taken. With
// fewer, one pause that is allowed could be too many.
const paceSpan = 2

// keeps counts n bytes that were waited for, and reports whether they come at rate
// bytes per second or more. It judges once per span. A rate below 0 is none.
func (p *pace) keeps(n int, waited time.Duration, rate int, span time.Duration) bool {
	p.got += n
	if p.waited += waited; p.waited < span || rate < 0 {
		return true
	}
	ok := float64(p.got) >= float64(rate)*p.waited.Seconds()
	*p = pace{}
	return ok
}
