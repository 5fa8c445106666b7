package room

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Site is what one site holds of a room.
type Site struct {
	Name        string
	crdt.Counts      // own site: Waiting by granule; others: by bucket
	Nodes       int  // live nodes; 0 gets no part of slots that no history claims
	Own         bool // the site of the node that builds the view

	// Closed is the newest tick whose counts are final at all nodes of the site; 0
	// if it has not said. A site whose Closed stands still has fallen silent.
	Closed int64
	Gone   bool // it left, and said so
}

// Input is all that a view is built from. Maps are read, never kept.
type Input struct {
	Sites []Site        // every site that counts, the own one included
	Nodes []crdt.NodeID // live nodes of the own site, Self included
	Self  crdt.NodeID
	Mine  crdt.Counts // this node's own row, part of its site's counts

	Frozen Frozen // what History.Observe returned
}

const (
	ticksPerMinute = int64(time.Minute / crdt.TickSpan)

	// maxCount bounds a single count, so that no sum over what peers sent can
	// wrap.
	maxCount = math.MaxInt32

	// settledBack is how many calendar minutes back shares are taken from: far
	// enough that no late message can still change what was seen then.
	settledBack = 2

	// lateTicks is how many full ticks before this one a node looks back to see
	// what its site has used of the places that are split between nodes. News
	// within a site takes far less than a tick, so what leaves the window is
	// known to all, and leaves it for all.
	lateTicks = 1

	// rateTicks is the span of the average admission rate.
	rateTicks = 5 * ticksPerMinute
)

// siteTally is one site's counts, brought to the form that the rules work with.
type siteTally struct {
	name    string
	own     bool
	nodes   int
	active  int
	waiting int
	minute  int // admitted in the last minute
}

// tally is the sum of an Input at one moment. Sites are sorted by name, so that
// every node divides in the same order.
type tally struct {
	sites    []siteTally
	own      int     // index into sites
	seen     []int   // per site, over the settled past
	buckets  []queue // oldest first
	granules []count // own site, oldest first
	active   int
	waiting  int

	last60s  int     // admitted
	rate     float64 // admitted per minute, averaged; 0 is unknown
	siteLate int     // admitted by the own site in the last ticks
	selfLate int     // admitted by this node in the same ticks
}

// queue is one bucket over all sites.
type queue struct {
	start   int64
	waiting int
	bySite  []int
}

// count is a number of visitors who arrived from start on.
type count struct {
	start int64
	n     int
}

func newTally(s Settings, in Input, now time.Time) tally {
	sites := sortedSites(in)
	tick := crdt.TickOf(now)
	t := tally{sites: make([]siteTally, len(sites))}
	for i, site := range sites {
		st := siteTally{name: site.Name, own: site.Own, nodes: max(0, site.Nodes), active: clampCount(site.Active)}
		if site.Own {
			t.own = i
			st.nodes = max(1, len(in.Nodes))
			t.siteLate = sumTicks(site.Admitted, tick-lateTicks, tick+1)
		}
		for _, n := range site.Waiting {
			st.waiting += clampCount(n)
		}
		st.minute = lastMinute(site.Admitted, tick)
		t.sites[i] = st
		t.active += st.active
		t.waiting += st.waiting
		t.last60s += st.minute
	}
	t.selfLate = sumTicks(in.Mine.Admitted, tick-lateTicks, tick+1)
	t.siteLate = max(t.siteLate, t.selfLate)
	t.seen = settledSeen(sites, tick)
	t.rate = averageRate(sites, tick)
	t.buckets, t.granules = queues(sites, seconds(s.BucketSpan))
	return t
}

// sortedSites returns the sites by name. A node that has not heard of its own
// site yet is a site of its own.
func sortedSites(in Input) []Site {
	sites := slices.Clone(in.Sites)
	if !slices.ContainsFunc(sites, func(s Site) bool { return s.Own }) {
		sites = append(sites, Site{Counts: in.Mine, Nodes: 1, Own: true})
	}
	slices.SortStableFunc(sites, func(a, b Site) int { return cmp.Compare(a.Name, b.Name) })
	return sites
}

// queues sums waiting visitors by bucket, and lists the own site's granules.
func queues(sites []Site, width int64) (buckets []queue, own []count) {
	index := make(map[int64]int)
	for i, site := range sites {
		for start, v := range site.Waiting {
			n := clampCount(v)
			if n == 0 {
				continue
			}
			b := bucketStart(start, width)
			at, known := index[b]
			if !known {
				at = len(buckets)
				index[b] = at
				buckets = append(buckets, queue{start: b, bySite: make([]int, len(sites))})
			}
			buckets[at].waiting += n
			buckets[at].bySite[i] += n
			if site.Own {
				own = append(own, count{start, n})
			}
		}
	}
	slices.SortFunc(buckets, func(a, b queue) int { return cmp.Compare(a.start, b.start) })
	slices.SortFunc(own, func(a, b count) int { return cmp.Compare(a.start, b.start) })
	return buckets, own
}

// sumTicks adds the counts of the ticks from … to, both included.
func sumTicks(ticks map[int64]int64, from, to int64) int {
	sum := 0
	for t := from; t <= to; t++ {
		sum += clampCount(ticks[t])
	}
	return sum
}

// lastMinute returns the count of the last 60 s, and of the whole tick that the
// window's edge runs through: all of that tick may have come at its end. So the
// limit holds in any 60 s, and a room at its limit admits a few per cent less.
// The next tick counts too: a peer's clock may be ahead.
func lastMinute(ticks map[int64]int64, tick int64) int {
	return sumTicks(ticks, tick-ticksPerMinute, tick+1)
}

// settledSeen returns each site's traffic of the calendar minute settledBack
// ago, or of the one after it if that one saw nobody. All zero: no history. The
// current minute is never used: it moves, each node sees it move at another
// time, and parts taken from it would add up to more than there is.
func settledSeen(sites []Site, tick int64) []int {
	minute := tick / ticksPerMinute
	var seen []int
	for back := int64(settledBack); back > 0; back-- {
		var any bool
		from := (minute - back) * ticksPerMinute
		if seen, any = seenBetween(sites, from, from+ticksPerMinute-1); any {
			break
		}
	}
	return seen
}

func seenBetween(sites []Site, from, to int64) (seen []int, any bool) {
	seen = make([]int, len(sites))
	for i, site := range sites {
		seen[i] = sumTicks(site.Seen, from, to)
		any = any || seen[i] > 0
	}
	return seen, any
}

// averageRate returns how many were admitted per minute over the last minutes,
// counted from the first tick in which anything happened, at least one minute.
// The current tick is left out: it is not full yet.
func averageRate(sites []Site, tick int64) float64 {
	first, sum := tick, 0
	for _, site := range sites {
		for t := tick - rateTicks; t < tick; t++ {
			if n := clampCount(site.Admitted[t]); n > 0 {
				sum += n
				first = min(first, t)
			}
		}
	}
	ticks := max(tick-first, ticksPerMinute)
	return float64(sum) * float64(ticksPerMinute) / float64(ticks)
}

func clampCount(n int64) int { return int(min(max(0, n), maxCount)) }
