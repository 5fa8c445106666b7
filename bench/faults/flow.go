//go:build linux

package faults

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
)

// outage is the death of one counter and what became of the tickets of its site.
type outage struct {
	at        int64
	others    map[string]bool  // the nodes of the site that live on
	first     map[string]int64 // when each of them gave the first ticket
	perTenth  map[int]int      // tickets of the whole mesh by tenths of a second since then
	again     time.Duration    // until the last of the others gave one
	wholeRate time.Duration    // until the mesh gave as many as before
}

func newOutage() *outage {
	return &outage{others: map[string]bool{}, first: map[string]int64{}, perTenth: map[int]int{}}
}

const (
	beforeOutage = 3 * time.Second
	afterOutage  = 61 * time.Second
	tenth        = 100 * time.Millisecond
)

// killCounter kills the counter of a site once rights lie where they are needed.
// Each trial has a mesh of its own: the rate rights of a node that was killed rest
// for a minute, and a mesh whose counters are killed faster than that has none
// left after a while, which is another fault (F5b).
func killCounter(r *run) error {
	if err := r.sleep(beforeOutage); err != nil {
		return err
	}
	c, err := r.counter([]string{"a", "b"}[r.trial%2])
	if err != nil {
		return err
	}
	o := newOutage()
	for _, n := range r.mesh.Nodes {
		if n.Site == c.Site && n != c {
			o.others[n.Name] = true
		}
	}
	r.mark("%s, the counter, is killed", c.Name)
	o.at = r.marks[len(r.marks)-1]
	if err := c.Kill(); err != nil {
		return err
	}
	r.outages = append(r.outages, o)
	if err := r.sleep(2 * time.Second); err != nil {
		return err
	}
	if err := r.restart(c); err != nil {
		return err
	}
	if err := r.sleep(4 * time.Second); err != nil {
		return err
	}
	return r.awaitFlow(o)
}

// awaitFlow goes on with a run until the whole rate is there again, or should be.
func (r *run) awaitFlow(o *outage) error {
	for time.Duration(record.Now()-o.at) <= afterOutage {
		so := newOutage()
		so.at, so.others = o.at, o.others
		if err := r.readOutages(so); err != nil {
			return err
		}
		if so.conclude() == nil {
			return nil
		}
		if err := r.sleep(time.Second); err != nil {
			return err
		}
	}
	return nil // what is missing is said when the run is judged
}

// add takes one event.
func (o *outage) add(e record.Located) {
	since := time.Duration(e.At - o.at)
	if e.Kind != record.Entered || since < -beforeOutage || since > afterOutage {
		return
	}
	o.perTenth[int(math.Floor(float64(since)/float64(tenth)))]++
	// Only a request from after the kill shows that tickets flow.
	if _, known := o.first[e.Node]; !known && o.others[e.Node] && e.Called() > o.at {
		o.first[e.Node] = e.At
	}
}

// conclude says when each of the other nodes of the site had given a ticket
// again, and when the mesh gave as many as before.
func (o *outage) conclude() error {
	for name := range o.others {
		at, ok := o.first[name]
		if !ok {
			return fmt.Errorf("%s gave no ticket any more", name)
		}
		o.again = max(o.again, time.Duration(at-o.at))
	}
	before := 0
	for i := -int(beforeOutage / tenth); i < 0; i++ {
		before += o.perTenth[i]
	}
	perSecond := float64(before) / beforeOutage.Seconds()
	for i := range int(afterOutage / tenth) {
		n := 0
		for j := i; j < i+10; j++ {
			n += o.perTenth[j]
		}
		if float64(n) >= 0.9*perSecond {
			o.wholeRate = time.Duration(i) * tenth
			return nil
		}
	}
	return fmt.Errorf("the rate of %.0f tickets per second did not come back within %v", perSecond, afterOutage)
}

// readOutages gives outages what is on record so far.
func (r *run) readOutages(outages ...*outage) error {
	for e, err := range record.NewMerge(r.mesh.Sources()).All() {
		if err != nil {
			return err
		}
		for _, o := range outages {
			o.add(e)
		}
	}
	return nil
}

// measureFlow measures how long the outages of one run lasted.
func measureFlow(r *run) error {
	if err := r.readOutages(r.outages...); err != nil {
		return err
	}
	var errs []error
	for _, o := range r.outages {
		errs = append(errs, o.conclude())
	}
	return errors.Join(errs...)
}

// flow says what all outages came to, and what is too long.
func flow(outages []*outage) (seen string, err error) {
	var again, whole []time.Duration
	for _, o := range outages {
		again, whole = append(again, o.again), append(whole, o.wholeRate)
	}
	slices.Sort(again)
	slices.Sort(whole)
	seen = fmt.Sprintf("%d trials: every other node of the site gives tickets again after %s (p50), %s (p99), %s at most; whole rate after %s (p50), %s (p99)",
		len(again), ms(quantile(again, 0.5)), ms(quantile(again, 0.99)), ms(again[len(again)-1]), ms(quantile(whole, 0.5)), ms(quantile(whole, 0.99)))
	var errs []error
	if q := quantile(again, 0.99); q > time.Second {
		errs = append(errs, fmt.Errorf("tickets flow again after %s at the 99th percentile, want 1 s", ms(q)))
	}
	if q := whole[len(whole)-1]; q > time.Minute {
		errs = append(errs, fmt.Errorf("the whole rate is back after %s, want 60 s", ms(q)))
	}
	return seen, errors.Join(errs...)
}

// quantile returns the smallest value of a sorted list that a share q of all
// does not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	i := int(q * float64(len(sorted)))
	if float64(i) == q*float64(len(sorted)) && i > 0 {
		i--
	}
	return sorted[min(i, len(sorted)-1)]
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
