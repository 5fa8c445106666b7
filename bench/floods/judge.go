//go:build linux

package floods

import (
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
)

// seen is what became of the visitor's requests in one window.
type seen struct {
	p99 time.Duration
	bad int64 // requests that were not answered by the site

	busy, waited float64 // parts of the time in which the node used its core, and in which others had it though it could have run
}

// medianP99 is the median of those of windows.
func medianP99(windows []seen) time.Duration {
	var all []float64
	for _, w := range windows {
		all = append(all, float64(w.p99))
	}
	return time.Duration(measurement.Median(all))
}

// slack is by how many bytes memory may differ at any time: what a node does by itself makes that much garbage.
const slack = 4 << 20

// grown is by which part samples of memory are higher in their last third than in their first, by the median of each, beyond
// slack: garbage comes and goes within each of them. It is 0 where memory has become less.
func grown(samples []float64) float64 {
	third := len(samples) / 3
	if third == 0 {
		return 0
	}
	first, last := measurement.Median(samples[:third]), measurement.Median(samples[len(samples)-third:])
	return max(0, last-first-slack) / first
}
