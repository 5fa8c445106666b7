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
	Closed  int64
	Gone    bool      // it left, and said so
	Changed time.Time // its last news; zero: not known, and it is taken to be fresh

	// Lent is how many of Active are tickets of the anywhere counter that the site's own
	// counts may show as well. They are reckoned with, so that no place is given twice, and
	// not shown as visitors: nobody is to read of more than there are.
	Lent int
}

// Input is all that a view is built from. Maps are read, never kept.
type Input struct {
	Sites []Site        // every site that counts, the own one included
	Nodes []crdt.NodeID // live nodes of the own site, Self included
	Self  crdt.NodeID
	Mine  crdt.Counts // this node's own row, part of its site's counts

	// Leaving is how many of those who wait at the own site may have been admitted already.
	Leaving int

	Frozen Frozen // what History.Observe returned

	// Away says that who hands out the places of no site is out of reach: none of them is to
	// be had here. Counter only.
	Away bool
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

	// At the edge of a tick what was used lately changes, and at that of a minute shares
	// and roundings do. edgeBefore is how far ahead a clock may be, and edgeAfter how old
	// what a node goes by: the view, the news in it, and a clock that is behind.
	edgeBefore = 400 * time.Millisecond
	edgeAfter  = 2 * time.Second

	// rateTicks is the span of the average admission rate.
	rateTicks = 5 * ticksPerMinute
)

// siteTally is one site's counts, brought to the form that the rules work with.
type siteTally struct {
	name    string
	own     bool
	frozen  bool // silent, or under Escrow out of reach
	back    bool // heard again, after it was silent; not frozen
	nodes   int
	active  int
	lent    int // of active, as Site has it
	waiting int
	minute  int           // admitted in the last minute
	used    [maxBases]int // admitted in the minute before each base, and since

	// Escrow only: rights that the site owns, and who of minute came in the tick
	// at its edge.
	held, heldRate, edge int
	orphans              int // of active: on places that are not among held any more, since their node does not run
}

// tally is the sum of an Input at one moment. Sites are sorted by name, so that
// every node divides in the same order. Sites that are frozen count only where it
// says "known"; everything else is of those that take part.
type tally struct {
	input    []Site // sorted; the caller's
	sites    []siteTally
	own      int           // index into sites
	bases    []int64       // ticks as of which the room may be divided, oldest first; see setBases
	seen     [][]int       // per base and site, over the settled past of its minute
	buckets  []queue       // oldest first
	parts    []inPart      // of buckets, in no order
	granules []count       // own site, oldest first
	index    map[int64]int // of buckets, by start
	starts   []int64       // scratch, of granules

	active                    int
	lent                      int // of knownActive, as Site has it
	knownActive, knownWaiting int
	last60s, knownLast60s     int // admitted

	// Who came from youngFrom on waits without all sites being sure to know. Zero: there is
	// nobody who has to know.
	youngFrom int64
	young     int  // own ones; they are at the end of the granules
	unsure    bool // there are some, here or elsewhere
	bare      bool // without them, for now

	away     bool          // as Input has it
	leaving  int           // as Input has it
	into     time.Duration // of this tick
	limit    int           // the lower of both limits, as far as it is for those who take part
	rate     float64       // admitted per minute, averaged; 0 is unknown
	siteLate int           // admitted by the own site in the last ticks
	selfLate int           // admitted by this node in the same ticks
}

// queue is one bucket over all sites.
type queue struct {
	start   int64
	waiting int
	own     int
	young   int // of waiting
}

// inPart is how many of the visitors of one bucket wait at one site, or some of them.
type inPart struct {
	bucket  int64
	site    int
	waiting int
	young   int // of waiting
}

// count is a number of visitors who arrived from start on.
type count struct {
	start int64
	n     int
}

// take sums an Input up. It keeps its slices from one time to the next.
func (t *tally) take(s *Settings, in *Input, now time.Time) {
	*t = tally{
		input: sorted(in), sites: t.sites[:0], seen: t.seen, bases: t.bases[:0],
		buckets: t.buckets[:0], parts: t.parts[:0], granules: t.granules[:0], starts: t.starts[:0], index: t.index,
	}
	tick := crdt.TickOf(now)
	t.into = now.Sub(time.Unix(0, 0)) % crdt.TickSpan
	first, admitted := tick, 0
	t.setBases(s, in, now)
	t.away, t.leaving = in.Away, in.Leaving
	for i := range t.input {
		site := &t.input[i]
		st := siteTally{
			name: site.Name, own: site.Own, frozen: in.Frozen.Has(site.Name) && !site.Own || s.Policy == Escrow && !site.inReach(s, now),
			nodes: in.Frozen.nodes(site.Name, clampCount(int64(site.Nodes))), active: clampCount(site.Active),
		}
		st.back = !st.frozen && !site.Own && in.Frozen.isBack(site.Name)
		w := window(site.Admitted, tick)
		st.minute = w.minute
		st.held, st.heldRate, st.edge, st.orphans = clampCount(site.Held), clampCount(site.HeldRate), w.edge, clampCount(site.Orphans)
		for k, base := range t.bases {
			st.used[k] = usedSince(site.Admitted, base-ticksPerMinute, tick+1)
		}
		if site.Own {
			t.own = i
			st.nodes = max(1, len(in.Nodes))
			t.siteLate = w.late
		}
		t.knownActive += st.active
		st.lent = clampCount(int64(site.Lent))
		t.lent += st.lent
		t.knownLast60s += st.minute
		if st.frozen || site.Gone && !site.Own {
			st.nodes = 0
		}
		if !st.frozen {
			t.active += st.active
			t.last60s += st.minute
			admitted += w.averaged
			first = min(first, w.first)
		}
		t.sites = append(t.sites, st)
	}
	t.selfLate = window(in.Mine.Admitted, tick).late
	t.siteLate = max(t.siteLate, t.selfLate)
	t.rate = float64(admitted) * float64(ticksPerMinute) / float64(max(tick-first, ticksPerMinute))
	t.settle(s, now)
	t.queues(s, now)
}

// sorted returns the sites by name. A node that has not heard of its own site yet
// is a site of its own. Mostly they come as they should, and are not copied.
func sorted(in *Input) []Site {
	byName := func(a, b Site) int { return cmp.Compare(a.Name, b.Name) }
	hasOwn := slices.ContainsFunc(in.Sites, func(s Site) bool { return s.Own })
	if hasOwn && slices.IsSortedFunc(in.Sites, byName) {
		return in.Sites
	}
	sites := slices.Clone(in.Sites)
	if !hasOwn {
		sites = append(sites, Site{Counts: in.Mine, Nodes: 1, Own: true})
	}
	slices.SortStableFunc(sites, byName)
	return sites
}

// waitingHere returns which part of those who wait at a site, as it last said, still has to be
// counted there. None of its nodes is in sight: its visitors poll elsewhere, and have all done so
// after one refresh interval. They do so evenly, so as many less count here as count there more.
func (s *Site) waitingHere(set *Settings, now time.Time) float64 {
	if s.Own || s.Nodes > 0 || s.Changed.IsZero() {
		return 1
	}
	silent := now.Sub(s.Changed)
	return min(1, max(0, 1-float64(silent)/float64(set.RefreshInterval)))
}

// queues sums waiting visitors by site and by bucket, and lists the own site's
// granules. Reading a map is most of what a view costs, so this is where it is done.
func (t *tally) queues(s *Settings, now time.Time) {
	width := seconds(s.BucketSpan)
	if t.index == nil {
		t.index = make(map[int64]int)
	}
	clear(t.index)
	for i := range t.input {
		site := &t.sites[i]
		here := 1.0
		if site.frozen || s.Policy == Escrow {
			here = t.input[i].waitingHere(s, now)
		} // else it may be cut off and divide the room by those who wait there, as this one does
		for start, v := range t.input[i].Waiting {
			n := int(math.Ceil(float64(clampCount(v)) * here))
			site.waiting += n
			if n == 0 || site.frozen {
				continue
			}
			b := bucketStart(start, width)
			part := inPart{bucket: b, site: i, waiting: n}
			t.markYoung(&part, start, width)
			t.parts = append(t.parts, part)
			at, known := t.index[b]
			if !known {
				at = len(t.buckets)
				t.index[b] = at
				t.buckets = append(t.buckets, queue{start: b})
			}
			t.buckets[at].waiting += n
			t.buckets[at].young += part.young
			if site.own {
				t.buckets[at].own += n
				t.starts = append(t.starts, start)
			}
		}
		t.knownWaiting += site.waiting
	}
	slices.SortFunc(t.buckets, func(a, b queue) int { return cmp.Compare(a.start, b.start) })
	slices.Sort(t.starts) // much faster than to sort granules
	own := t.input[t.own].Waiting
	for _, start := range t.starts {
		t.granules = append(t.granules, count{start, clampCount(own[start])})
	}
}

// admissions is what one site let in, over the spans that the rules look at.
type admissions struct {
	// minute is the count of the last 60 s, and of the whole tick that the
	// window's edge runs through: all of that tick may have come at its end. So
	// the limit holds in any 60 s, and a room at its limit admits a few per cent
	// less. The next tick counts too: a peer's clock may be ahead.
	minute int

	edge int // those of minute that came in its first tick
	late int // in this tick, the next, and lateTicks before

	// averaged is the count of the last rateTicks, and first the first of them in
	// which anything happened. The current tick is left out: it is not full yet.
	averaged int
	first    int64
}

func window(ticks map[int64]int64, tick int64) admissions {
	a := admissions{first: tick}
	if len(ticks) == 0 {
		return a
	}
	for at, v := range ticks {
		n, back := clampCount(v), tick-at
		if n == 0 || back < -1 || back > rateTicks {
			continue
		}
		if back <= ticksPerMinute {
			a.minute += n
		}
		if back == ticksPerMinute {
			a.edge = n
		}
		if back <= lateTicks {
			a.late += n
		}
		if back > 0 {
			a.averaged += n
			a.first = min(a.first, at)
		}
	}
	return a
}

// settle works out each site's traffic of the calendar minute settledBack before that of
// each base. All zero: no history.
//
// Every site that takes part has closed that minute, or it would be taken for
// silent by now: settled history cannot change any more, so all nodes work with
// the same. The current minute is never used: each node sees it move at another
// time, and parts taken from it would add up to more than there is.
func (t *tally) settle(s *Settings, now time.Time) {
	for len(t.seen) < len(t.bases) {
		t.seen = append(t.seen, nil)
	}
	for k, base := range t.bases {
		t.seen[k] = resize(t.seen[k], len(t.input))
		if k > 0 && base/ticksPerMinute == t.bases[k-1]/ticksPerMinute {
			copy(t.seen[k], t.seen[k-1])
			continue
		}
		for i := range t.input {
			site := &t.input[i]
			if !t.sites[i].frozen && len(site.Seen) > 0 && site.standing(s, now) != left {
				t.seen[k][i] = seenIn(site, base/ticksPerMinute-settledBack)
			}
		}
	}
}

// seenIn returns how many a site saw in a calendar minute.
func seenIn(s *Site, minute int64) int {
	sum := 0
	for tick := minute * ticksPerMinute; tick < (minute+1)*ticksPerMinute; tick++ {
		sum += clampCount(s.Seen[tick])
	}
	return sum
}

// resize returns a slice of n zeros in the memory of s.
func resize(s []int, n int) []int {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

func clampCount(n int64) int { return int(min(max(0, n), maxCount)) }
