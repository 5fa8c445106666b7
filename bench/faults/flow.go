//go:build linux

package faults

import (
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
)

// outage is the death of one counter and what became of the tickets of its site.
type outage struct {
	at     int64
	others []string      // the nodes of the site that live on
	again  time.Duration // until the last of the others gave a ticket
	whole  time.Duration // until the mesh gave as many as before
	lasts  error         // why it is not over
}

const (
	beforeOutage = 3 * time.Second
	afterOutage  = 61 * time.Second
	tenth        = 100 * time.Millisecond
)

// killCounter kills the counter of a site once rights lie where they are needed, and goes
// on until the whole rate is there again, or should be. Each trial has a mesh of its own: the
// rate rights of a node that was killed rest for a minute, and a mesh whose counters are killed
// faster than that has none left after a while, which is another fault (F5b).
func killCounter(r *run) {
	r.sleep(beforeOutage)
	c := r.counter([]string{"a", "b"}[r.trial%2])
	r.mark("%s, the counter, is killed", c.Name)
	o := &outage{at: r.marks[len(r.marks)-1]}
	for _, n := range r.mesh.Nodes {
		if n.Site == c.Site && n != c {
			o.others = append(o.others, n.Name)
		}
	}
	r.kill(c)
	r.outage = o
	r.sleep(2 * time.Second)
	r.start(c)
	r.sleep(4 * time.Second)
	r.until(afterOutage-time.Duration(record.Now()-o.at), time.Second, func() bool {
		o.lasts = o.measure(r.events())
		return o.lasts == nil
	})
}

// checkFlow: tickets have to flow again within a second, and as many as before within a minute.
func checkFlow(r *run) (wrong []string) {
	switch o := r.outage; {
	case o == nil: // it was not killed
	case o.lasts != nil:
		wrong = append(wrong, o.lasts.Error())
	case o.again > time.Second:
		wrong = append(wrong, fmt.Sprintf("tickets flow again after %s, want 1 s", ms(o.again)))
	case o.whole > time.Minute:
		wrong = append(wrong, fmt.Sprintf("the whole rate is back after %s, want 60 s", ms(o.whole)))
	}
	return wrong
}

// measure says when each of the other nodes of the site had given a ticket
// again, and when the mesh gave as many as before.
func (o *outage) measure(events iter.Seq[record.Located]) error {
	first := map[string]int64{}
	perTenth := map[int]int{} // tickets of the whole mesh by tenths of a second since then
	for e := range events {
		since := time.Duration(e.At - o.at)
		if e.Kind != record.Entered || since < -beforeOutage {
			continue
		}
		perTenth[int(math.Floor(float64(since)/float64(tenth)))]++
		// Only a request from after the kill shows that tickets flow.
		if _, known := first[e.Node]; !known && e.Called() > o.at {
			first[e.Node] = e.At
		}
	}
	for _, name := range o.others {
		at, ok := first[name]
		if !ok {
			return fmt.Errorf("%s gave no ticket any more", name)
		}
		o.again = max(o.again, time.Duration(at-o.at))
	}
	perSecond := func(from int, lasts time.Duration) (rate float64) {
		for i := from; i < from+int(lasts/tenth); i++ {
			rate += float64(perTenth[i]) / lasts.Seconds()
		}
		return rate
	}
	before := perSecond(-int(beforeOutage/tenth), beforeOutage)
	for i := range int(afterOutage / tenth) {
		if perSecond(i, time.Second) >= 0.9*before {
			o.whole = time.Duration(i) * tenth
			return nil
		}
	}
	return fmt.Errorf("the rate of %.0f tickets per second did not come back within %v", before, afterOutage)
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
