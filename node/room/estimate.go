package room

import (
	"math"
	"sort"
	"time"
)

// Estimate returns what to tell a waiting visitor who arrived at arrival.
//
// The minutes count everyone in strictly older buckets against the average
// admission rate, at least one, and are unknown while nobody has been admitted.
// Position and people ahead are finer: by granule in the own site; elsewhere,
// and inside the own granule, as if arrivals were spread evenly.
func (v *View) Estimate(arrival time.Time) Estimate {
	width := seconds(v.Settings.BucketSpan)
	start := BucketOf(arrival, v.Settings.BucketSpan)
	mine := sort.Search(len(v.Buckets), func(i int) bool { return v.Buckets[i].Start >= start })
	older := 0
	for _, b := range v.Buckets[:mine] {
		older += b.Waiting
	}
	ahead := older
	if mine < len(v.Buckets) && v.Buckets[mine].Start == start {
		others := v.Buckets[mine].Waiting - v.ownBuckets[mine]
		ahead += spread(others, arrival, start, start+width)
		ahead += v.aheadInSite(arrival, start, width)
	}
	e := Estimate{Position: ahead + 1, Ahead: ahead}
	if v.AdmittedMinute > 0 {
		e.Known = true
		e.Minutes = max(1, int(math.Ceil(min(float64(older)/v.AdmittedMinute, maxCount))))
	}
	return e
}

// aheadInSite counts the own site's visitors in the bucket from start who
// arrived before arrival.
func (v *View) aheadInSite(arrival time.Time, start, width int64) int {
	at := GranuleOf(arrival, v.Settings.BucketSpan)
	first := sort.Search(len(v.ownGranules), func(i int) bool { return v.ownGranules[i].start >= start })
	ahead := 0
	for _, g := range v.ownGranules[first:] {
		if g.start > at {
			break
		}
		if g.start == at {
			// The visitor is one of them.
			ahead += spread(g.n-1, arrival, at, granuleEnd(at, width))
			break
		}
		ahead += g.n
	}
	return ahead
}

// spread returns how many of n visitors who arrived evenly from start to end
// came before at.
func spread(n int, at time.Time, start, end int64) int {
	if n <= 0 || end <= start {
		return 0
	}
	fraction := at.Sub(time.Unix(start, 0)).Seconds() / float64(end-start)
	return int(float64(n) * min(max(fraction, 0), 1))
}
