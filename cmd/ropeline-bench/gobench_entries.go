package main

import "github.com/ropeline/ropeline/bench/measurement"

// Units that several have.
var (
	perOp  = measurement.Unit{Name: "sec/op", Meaning: "time for one", Better: "lower"}
	allocs = measurement.Unit{Name: "allocs/op", Meaning: "allocations for one", Better: "lower"}
)

// goEntries are the measurements that Go benchmarks make.
func goEntries() (all []measurement.Entry) {
	for _, some := range [][]goBench{meshBenches(), decisionBenches(), partBenches()} {
		for _, g := range some {
			all = append(all, g.entry())
		}
	}
	return all
}

// meshBenches are of nodes that are linked by QUIC.
func meshBenches() []goBench {
	return []goBench{
		{
			Entry: measurement.Entry{
				Name: "spread", Page: "measurements.md",
				Question: "How fast does news spread?",
				Method:   "Five nodes in two sites, over QUIC on loopback: an admission at one of them, until the view of each other node shows it.",
				Units: []measurement.Unit{
					{Name: "same-site-p50-sec", Meaning: "half of the nodes of the same site show it sooner", Better: "lower"},
					{Name: "same-site-p99-sec", Meaning: "99 of 100 of these", Better: "lower"},
					{Name: "other-site-p50-sec", Meaning: "half of the nodes of the other site show it sooner", Better: "lower"},
					{Name: "other-site-p99-sec", Meaning: "99 of 100 of these", Better: "lower"},
				},
				Quick: []string{"time=3x", "count=1"},
			},
			packages: []string{"./node"}, benchmarks: []goBenchmark{{"Spread", "an admission"}}, benchtime: "200x", count: 1,
		},
		{
			Entry: measurement.Entry{
				Name: "wire", Page: "measurements.md",
				Question: "What does the mesh cost on the wire?",
				Method:   "Bytes of UDP payload that a node sends a second, QUIC and gossip included, with a hundred rooms: at rest, and while each of them lets somebody in every second. Nodes stand in two sites, twelve of them in three.",
				Units:    []measurement.Unit{{Name: "B/s", Meaning: "sent by one node, in the mean", Better: "lower"}},
				Quick:    []string{"bench=^BenchmarkWire$/nodes=3", "time=1x", "count=1"},
			},
			packages: []string{"./node"}, benchmarks: []goBenchmark{{"Wire", ""}}, benchtime: "15x", count: 3,
		},
		{
			Entry: measurement.Entry{
				Name: "tickets", Page: "measurements.md",
				Question: "How many tickets does a site give, and how long do visitors wait for them?",
				Method: "Three nodes of one site under `escrow`, QUIC over loopback, stores on disk, and visitors who come at a fixed rate whether or not those before them have their answer. " +
					"Waits count from when a visitor was due, of which half a millisecond is the load's own step. Load and nodes share the cores.",
				Units: []measurement.Unit{
					{Name: "tickets/s", Meaning: "tickets given a second", Better: "higher"},
					{Name: "refused/s", Meaning: "visitors told to wait", Better: "lower"},
					{Name: "p50-sec", Meaning: "half of the visitors wait less", Better: "lower"},
					{Name: "p99-sec", Meaning: "99 of 100 wait less", Better: "lower"},
					{Name: "p999-sec", Meaning: "999 of 1,000 wait less", Better: "lower"},
					{Name: "cpu-sec/ticket", Meaning: "processor time for a ticket, that of the load included", Better: "lower"},
				},
				Quick: []string{"bench=^BenchmarkEscrowRate$/rate=50000", "count=1"},
			},
			packages: []string{"./node"}, benchmarks: []goBenchmark{{"EscrowRate", ""}}, benchtime: "1x", count: 6,
		},
	}
}

// decisionBenches are of what is done with one request.
func decisionBenches() []goBench {
	return []goBench{
		{
			Entry: measurement.Entry{
				Name: "decisions", Page: "measurements.md",
				Question: "What does a decision take by itself?",
				Method:   "Functions, called in turn in one process: the rules, a room with its counts, the view of a room, and all that a node does with an admitted request between its parser and the site (who asks, which site and room of five, four rules, opening the pass, decision, count).",
				Units:    []measurement.Unit{perOp, allocs},
				Quick:    []string{"time=100x", "count=1"},
			},
			packages:   []string{"./node", "./node/room", "./httpfront"},
			benchmarks: []goBenchmark{{"Rules", "the rules alone"}, {"Decide", "a room's decision"}, {"Build", "building a view"}, {"Judge", "parser to site, admitted"}}, benchtime: "1s", count: 6,
		},
		{
			Entry: measurement.Entry{
				Name: "limit-decisions", Page: "rate-limits-measured.md",
				Question: "What does the decision of a rate limit take?",
				Method:   "From the values of a request's characteristics to the verdict, the hash, the lock and the table included, with a million live keys, which come in turn or are drawn with a heavy tail (Zipf, 1.05).",
				Units:    []measurement.Unit{perOp, allocs},
				Quick:    []string{"time=100x", "count=1"},
			},
			packages: []string{"./node"},
			benchmarks: []goBenchmark{
				{"MeterTake", "a key that is not limited"},
				{"MeterTakeHeavyTail", "the same, heavy tail"},
				{"MeterTakeLimited", "a key that is limited"},
				{"TimeRate", "golang.org/x/time/rate, in a map with a lock"},
				{"Memory", "one read of memory that no cache has"},
			}, benchtime: "1s", count: 6,
		},
		{
			Entry: measurement.Entry{
				Name: "attack", Page: "rate-limits-measured.md",
				Question: "Does an attack beyond a rate limit make decisions slower for those who are on the site?",
				Method:   "Decisions about a visitor who is on the site, ten thousand a second, while one source comes 400,000 times a second beyond a limit, and while it does not, in turn, in one process.",
				Units: []measurement.Unit{
					{Name: "calm-p99-sec", Meaning: "99 of 100 decisions take less without the attack", Better: "lower"},
					{Name: "attacked-p99-sec", Meaning: "99 of 100 decisions take less with the attack", Better: "lower"},
					{Name: "ratio", Meaning: "p99 with the attack by that without", Better: "lower"},
					{Name: "attacks/s", Meaning: "requests of the attack that were decided, a second", Better: "higher"},
				},
				Quick: []string{"time=2x", "count=1"},
			},
			packages: []string{"./httpfront"}, benchmarks: []goBenchmark{{"Attack", "a decision"}}, benchtime: "40x", count: 6,
		},
	}
}

// partBenches are of a node's parts.
func partBenches() []goBench {
	return []goBench{
		{
			Entry: measurement.Entry{
				Name: "store", Page: "storage.md",
				Question: "What do commits and durable counters cost?",
				Method: "Commits to one file, one after the other; the plainest counter (get, put the next number, return it), 16 of them, every caller drawing the next number when the last is durable; " +
					"and the heap of an object with two small entries, after 5,000 calls at once.",
				Units: []measurement.Unit{
					{Name: "p50-sec", Meaning: "half of the commits, or of the calls, take less", Better: "lower"},
					{Name: "p99-sec", Meaning: "99 of 100 take less", Better: "lower"},
					{Name: "updates/s", Meaning: "updates on disk, a second", Better: "higher"},
					{Name: "calls/s", Meaning: "numbers drawn, a second", Better: "higher"},
					{Name: "commits/s", Meaning: "commits that these calls took, a second"},
					{Name: "live-B", Meaning: "heap of an object that is live", Better: "lower"},
					{Name: "idle-B", Meaning: "heap that is left of one that was put away", Better: "lower"},
				},
				Quick: []string{"time=10x", "count=1"},
			},
			packages:   []string{"./node/durable"},
			benchmarks: []goBenchmark{{"Commit", "a commit"}, {"Counter", "a counter"}, {"MemoryPerObject", "an object"}}, benchtime: "1s", count: 6,
		},
		{
			Entry: measurement.Entry{
				Name: "dashboard", Page: "dashboard.md",
				Question: "Is the dashboard smooth with many rooms and nodes?",
				Method:   "Each view in Chromium, with 200 rooms on 12 nodes of which every room and every time changes each second. The screen is drawn 60 times a second at most.",
				Units: []measurement.Unit{
					{Name: "frames/s", Meaning: "frames drawn a second", Better: "higher"},
					{Name: "p50-sec", Meaning: "half of the frames come sooner after the one before", Better: "lower"},
					{Name: "p95-sec", Meaning: "95 of 100 come sooner", Better: "lower"},
					{Name: "longest-sec", Meaning: "the longest time between two frames", Better: "lower"},
					{Name: "over-33ms-%", Meaning: "part of the frames that come more than 33 ms after the one before", Better: "lower"},
					{Name: "busy-%", Meaning: "part of the time in which the page's main thread works", Better: "lower"},
					{Name: "script-B", Meaning: "JavaScript in use after a collection", Better: "lower"},
					{Name: "process-B", Meaning: "private memory of the page's process", Better: "lower"},
				},
				Needs: []string{"chromium"}, Programs: map[string][]string{"Chromium": {"chromium", "--version"}},
				Quick: []string{"bench=^BenchmarkViews$/view=mesh", "time=1x", "count=1"},
			},
			packages: []string{"./httpfront/operator/dashboard"}, benchmarks: []goBenchmark{{"Views", ""}}, benchtime: "60x", count: 1,
		},
	}
}
