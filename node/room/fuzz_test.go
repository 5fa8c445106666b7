package room

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// world draws a mesh in which every node knows everything, and returns what each
// node is given: one Input per node, grouped by site.
func world(rng *rand.Rand, s Settings, now time.Time) [][]Input {
	number := 0
	type site struct {
		sum  crdt.Counts
		rows []crdt.Counts
		ids  []crdt.NodeID
	}
	sites := make([]site, 1+rng.IntN(4))
	for i := range sites {
		st := &sites[i]
		st.sum = crdt.Counts{Waiting: map[int64]int64{}, Seen: map[int64]int64{}, Admitted: map[int64]int64{}}
		for range 1 + rng.IntN(5) {
			row := crdt.Counts{Active: rng.Int64N(30), Held: rng.Int64N(40), HeldRate: rng.Int64N(40), Waiting: map[int64]int64{}, Seen: map[int64]int64{}, Admitted: map[int64]int64{}}
			for range rng.IntN(4) {
				age := time.Duration(rng.Int64N(int64(4 * time.Minute)))
				row.Waiting[GranuleOf(now.Add(-age), s.BucketSpan)] += rng.Int64N(12)
				row.Admitted[crdt.TickOf(now.Add(-age))] += rng.Int64N(9)
				row.Seen[crdt.TickOf(now.Add(-age))] += rng.Int64N(20)
			}
			add(&st.sum, row, 0)
			st.rows = append(st.rows, row)
			st.ids = append(st.ids, nodeID(number))
			number++
		}
	}
	out := make([][]Input, len(sites))
	for own := range sites {
		var in Input
		for i, st := range sites {
			shown := st.sum
			if i != own {
				shown = crdt.Counts{Waiting: map[int64]int64{}, Seen: map[int64]int64{}, Admitted: map[int64]int64{}}
				add(&shown, st.sum, s.BucketSpan)
			}
			in.Sites = append(in.Sites, Site{Name: string(rune('a' + i)), Counts: shown, Nodes: len(st.ids), Own: i == own})
		}
		in.Nodes = sites[own].ids
		for n, id := range in.Nodes {
			in.Self, in.Mine = id, sites[own].rows[n]
			out[own] = append(out[own], in)
		}
	}
	return out
}

// fuzzSettings draws a room: each method, policy and kind of event.
func fuzzSettings(limit, rate uint16, shape, kind byte, now time.Time) Settings {
	free := Open
	if shape%2 == 0 {
		free = Escrow
	}
	s := Settings{
		TotalActiveUsers: int(limit), NewUsersPerMinute: int(rate),
		Policy:         []Policy{Even, Curve, Counter, free}[kind&3],
		QueueingMethod: []Method{FIFO, Random, FIFO, Random, FIFO, Random, Passthrough, Reject}[kind>>2&7],
		BucketSpan:     time.Duration(1+shape%60) * time.Second, CurveFactor: float64(shape % 9),
		QueueAll: shape == 77,
	}.WithDefaults()
	event := Event{Name: "e", PrequeueStart: now.Add(-time.Duration(shape) * time.Second), Shuffle: shape&1 == 1}
	switch kind >> 5 {
	case 0: // the pre-queue of an event
		event.Start = event.PrequeueStart.Add(5*time.Minute + time.Second)
	case 1: // the event itself
		event.PrequeueStart = now.Add(-time.Hour)
		event.Start = now.Add(-time.Minute)
		event.QueueingMethod = new(Random)
	default:
		return s
	}
	event.End = event.Start.Add(time.Hour)
	s.Events = []Event{event}
	return s
}

// FuzzBuild checks whole meshes that know everything: slots are never reserved
// twice, parts add up, and under Even and Counter all nodes together may admit no
// more than there are slots.
func FuzzBuild(f *testing.F) {
	for seed := range uint64(256) {
		f.Add(seed, uint16(seed*7), uint16(1000), byte(seed), byte(seed), int64(seed)*1777)
	}
	f.Fuzz(func(t *testing.T, seed uint64, limit, rate uint16, shape, kind byte, ms int64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		now := time.Unix(1_767_268_800, 0).Add(time.Duration(ms%86_400_000) * time.Millisecond)
		s := fuzzSettings(limit, rate, shape, kind, now)
		together, anywhere := 0, 0
		var v *View
		var builder Builder
		for _, nodes := range world(rng, s, now) {
			site, sure := 0, 0
			for _, in := range nodes {
				v = builder.Build(&s, &in, now)
				checkView(t, v, &in)
				checkAllowed(t, v, &in)
				if s.Policy == Counter || s.Policy == Escrow {
					site = v.AllowNew // the same at each node, for one of them to hand out
				} else {
					site += v.AllowNew
				}
				sure = v.AllowWaiting // the same visitors, whichever node they ask
			}
			together += site + sure
			anywhere = v.AllowAnywhere
		}
		strict := v.AllowNew < Unlimited && (s.Policy == Even || s.Policy == Counter)
		if together += anywhere; strict && together > v.Slots {
			t.Errorf("nodes may admit %d together, slots %d", together, v.Slots)
		}
		if v.closed && together > 0 {
			t.Errorf("%d may enter a room that is closed", together)
		}
	})
}

// checkAllowed checks what one node may do with its view.
func checkAllowed(t *testing.T, v *View, in *Input) {
	t.Helper()
	strict := v.AllowNew < Unlimited && v.Settings.Policy != Curve && v.Settings.Policy != Escrow
	if strict && v.AllowNew+v.AllowWaiting+v.AllowAnywhere > v.Slots {
		t.Errorf("%d, %d and %d may enter, slots %d", v.AllowWaiting, v.AllowNew, v.AllowAnywhere, v.Slots)
	}
	fresh := v.AllowAnywhere
	for _, s := range v.Sites {
		fresh += s.New
	}
	if counter := v.Settings.Policy == Counter && !v.closed && v.AllowNew < Unlimited; counter && agreed(v, in) && fresh != v.SlotsNew {
		t.Errorf("sites and anywhere have %d of %d slots for new visitors", fresh, v.SlotsNew)
	}
	if v.Settings.QueueingMethod == Random && (v.AllowWaiting != 0 && v.AllowWaiting < Unlimited) {
		t.Errorf("%d places are reserved where chance decides", v.AllowWaiting)
	}
	if v.Event.Prequeueing {
		if v.OpenToNew {
			t.Error("open to new visitors before the start")
		}
		late := Visitor{Arrival: v.BuiltAt, LastPoll: v.BuiltAt.Add(-time.Minute)}
		for _, vis := range []Visitor{{}, late} {
			if d := v.Decide(vis, v.BuiltAt); d.Action != Wait {
				t.Errorf("%+v gets %v before the start", vis, d.Action)
			}
		}
	}
}

// FuzzCut checks a mesh that is cut in two: what both sides have in and may let in
// is no more than the room holds, as far as each was within its share before.
func FuzzCut(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(seed, uint16(1+seed*5), uint16(1+seed*11), byte(seed*37), int64(30+seed*13))
	}
	f.Fuzz(func(t *testing.T, seed uint64, limit, rate uint16, kind byte, late int64) {
		// What Escrow has on each side is said in FuzzRights.
		rng := rand.New(rand.NewPCG(seed, 6))
		cut := time.Unix(1_767_268_800, 0).Add(time.Duration(rng.IntN(3600)) * time.Second)
		now := cut.Add(time.Duration(30+(late%840+840)%840) * time.Second)
		s := fuzzSettings(max(1, limit), max(1, rate), 31, kind|0xe0, now)
		worlds := world(rng, s, cut)
		total, perMinute := 0, 0
		for side := range 2 {
			for own := side; own < len(worlds); own += 2 {
				in := worlds[own][0]
				in.Sites = append([]Site(nil), in.Sites...)
				for i := range in.Sites {
					in.Sites[i].Closed = crdt.TickOf(now) - 1
					if i%2 != side {
						in.Sites[i].Closed = crdt.TickOf(cut) - 1
					}
				}
				var h History
				in.Frozen = h.Observe(&s, in.Sites, now)
				v := Build(s, in, now)
				checkView(t, v, &in)
				checkAllowed(t, v, &in)
				if own != side || v.Slots == 0 {
					continue
				}
				for i, site := range v.Sites {
					if i%2 == side {
						total += site.Active
						perMinute += lastMinuteOf(in.Sites[i], now)
					} else if !site.Frozen {
						t.Errorf("site %s is not frozen", site.Name)
					}
				}
				total += v.Slots
				perMinute += v.Slots
			}
		}
		if total > s.TotalActiveUsers || perMinute > s.NewUsersPerMinute {
			t.Errorf("both sides together: %d of %d active, %d of %d in a minute", total, s.TotalActiveUsers, perMinute, s.NewUsersPerMinute)
		}
	})
}

func lastMinuteOf(s Site, now time.Time) int { return window(s.Admitted, crdt.TickOf(now)).minute }

// agreed reports whether all nodes are sure to divide by the same numbers, so that parts add up to
// all there is: rights are where they are, and who knows of no site in touch has nobody to agree
// with. Else, and at the edge of a tick, parts may add up to less.
func agreed(v *View, in *Input) bool {
	if crdt.TickOf(v.BuiltAt.Add(-edgeAfter)) != crdt.TickOf(v.BuiltAt.Add(edgeBefore)) {
		return false
	}
	return v.Settings.Policy == Escrow || !slices.ContainsFunc(in.Sites, func(s Site) bool {
		return !s.Own && s.Closed != 0 && !in.Frozen.Has(s.Name)
	})
}

// checkView checks what must hold in every view, whatever the counts.
func checkView(t *testing.T, v *View, in *Input) {
	t.Helper()
	reserved, places, older := 0, 0, true
	for i, b := range v.Buckets {
		reserved += b.Reserved
		if b.Reserved < 0 || b.Reserved > b.Waiting {
			t.Errorf("bucket %d: %d reserved for %d", i, b.Reserved, b.Waiting)
		}
		if b.Reserved > 0 && !older {
			t.Errorf("bucket %d has places although an older one has too few", i)
		}
		older = older && b.Reserved == b.Waiting
	}
	if v.Slots < 0 || reserved+v.SlotsNew != v.Slots {
		t.Errorf("%d reserved and %d new of %d slots", reserved, v.SlotsNew, v.Slots)
	}
	if v.SlotsNew > 0 && !older && v.Settings.QueueingMethod != Random {
		t.Errorf("new visitors get %d slots while others wait", v.SlotsNew)
	}
	waiting := 0
	for _, s := range v.Sites {
		waiting += s.Reserved
		places += s.New
		if s.Reserved < 0 || s.New < 0 || s.Reserved > s.Waiting {
			t.Errorf("site %s: %d reserved for %d, %d new", s.Name, s.Reserved, s.Waiting, s.New)
		}
	}
	if waiting > reserved || waiting < reserved && agreed(v, in) {
		t.Errorf("sites get %d places for waiting visitors, want %d", waiting, reserved)
	}
	if places > v.SlotsNew {
		t.Errorf("sites get %d places for new visitors, want at most %d", places, v.SlotsNew)
	}
	if v.Edge.Before(v.Cursor) || v.AllowNew < 0 || v.AllowWaiting < 0 {
		t.Errorf("cursor %v, edge %v, allowances %d and %d", v.Cursor, v.Edge, v.AllowWaiting, v.AllowNew)
	}
}

// FuzzBuildRubbish feeds counts that no honest peer would send.
func FuzzBuildRubbish(f *testing.F) {
	f.Add(int64(-1), int64(1<<62), int64(-1<<62), int64(1<<62), int64(1<<40), 1<<31-1, 1<<31-1)
	f.Add(int64(1<<62), int64(0), int64(0), int64(0), int64(-1<<40), 0, -5)
	f.Fuzz(func(t *testing.T, active, waiting, seen, admitted, at int64, limit, nodes int) {
		now := time.Unix(1_767_268_800, 0)
		tick := crdt.TickOf(now)
		c := crdt.Counts{
			Active: active, Held: seen, HeldRate: waiting,
			Waiting:  map[int64]int64{at: waiting, now.Unix(): waiting, now.Unix() - 70: 5},
			Seen:     map[int64]int64{tick - 2*ticksPerMinute: seen, at: seen},
			Admitted: map[int64]int64{tick: admitted, at: admitted},
		}
		s := Settings{Policy: []Policy{Even, Escrow}[limit&1], TotalActiveUsers: limit, NewUsersPerMinute: limit}
		in := Input{
			Sites: []Site{{Name: "a", Counts: c, Own: true}, {Name: "b", Counts: c, Nodes: nodes}},
			Nodes: nodeIDs(3), Self: nodeID(1), Mine: c,
		}
		v := Build(s, in, now)
		checkView(t, v, &in)
		v.Estimate(time.Unix(at, 0), Shown{})
		v.Decide(Visitor{Arrival: time.Unix(at, 0)}, now)
	})
}

// FuzzDecide checks that no pass, however odd, gets in past the rules.
func FuzzDecide(f *testing.F) {
	for kind := range 64 {
		f.Add(int64(60_000), int64(20_000), int64(20_000), int64(0), false, 3, 0, byte(kind*4))
		f.Add(int64(-5_000), int64(-1_000), int64(0), int64(500), true, 0, 3, byte(kind*4))
	}
	f.Fuzz(func(t *testing.T, arrival, last, refresh, past int64, accepted bool, waiting, slots int, kind byte) {
		now := time.Unix(1_767_268_800, 0)
		ago := func(ms int64) time.Time { return now.Add(-time.Duration(ms%1e12) * time.Millisecond) }
		counts := crdt.Counts{Waiting: map[int64]int64{now.Unix() - 120: int64(waiting % 1000)}}
		s := fuzzSettings(uint16(1+max(0, slots%1000)), 1000, 60, kind, now)
		s.DisableSessionRenewal = past%2 == 0
		v := Build(s, oneSite(counts, 1, 0), now)
		vis := Visitor{Arrival: ago(arrival), LastPoll: ago(last), Refresh: time.Duration(refresh%1e6) * time.Millisecond}
		vis.Place = v.Settings.Place(nil, [16]byte{1}, vis.Arrival)
		if accepted {
			vis.AcceptedAt, vis.LeaseEnd = ago(arrival), ago(past)
		}
		checkDecision(t, v, vis, v.Decide(vis, now), now)
		checkExplanation(t, v, vis, now)
		e, _ := v.Estimate(vis.Place, Shown{})
		if e.Ahead < 0 || e.Position > 0 && e.Position != e.Ahead+1 || e.Ahead > v.Waiting {
			t.Errorf("estimate %+v with %d waiting", e, v.Waiting)
		}
	})
}

func checkDecision(t *testing.T, v *View, vis Visitor, d Decision, now time.Time) {
	t.Helper()
	accepted := !vis.AcceptedAt.IsZero()
	held := v.Event.Prequeueing && (d.New || !vis.Arrival.Before(v.Event.PrequeueStart))
	if (d.Action == Apply || d.Action == Compete) && (v.closed || held) {
		t.Errorf("%+v may enter in %+v", vis, v.Event)
	}
	switch d.Action {
	case Enter:
		if !accepted || vis.LeaseEnd.Before(now) {
			t.Errorf("%+v enters", vis)
		}
	case Ask:
		over := now.Sub(vis.LeaseEnd) >= 2*v.Settings.SessionDuration || v.Settings.DisableSessionRenewal
		if !accepted || !vis.LeaseEnd.Before(now) || over {
			t.Errorf("%+v is asked for", vis)
		}
	case Apply:
		away := !vis.LastPoll.IsZero() && vis.Refresh > 0 && now.Sub(vis.LastPoll) > vis.Refresh*5/2
		if d.New || away || v.AllowWaiting == 0 || !vis.Place.Before(v.Cursor) {
			t.Errorf("%+v has a place in %+v", vis, v)
		}
	case Compete:
		if v.AllowNew == 0 && v.AllowAnywhere == 0 {
			t.Errorf("%+v competes for nothing", vis)
		}
		if age := now.Sub(vis.LastPoll); v.Settings.QueueingMethod == Random && v.AllowNew < Unlimited && !d.New && vis.Refresh > 0 && age < vis.Refresh {
			t.Errorf("%+v draws again after %v", vis, age)
		}
	case TooEarly:
		if accepted || d.New {
			t.Errorf("%+v is too early", vis)
		}
	case Refuse:
		if v.Settings.QueueingMethod != Reject || !d.New {
			t.Errorf("%+v is refused in %s", vis, v.Settings.QueueingMethod)
		}
	}
}

func FuzzApportion(f *testing.F) {
	f.Add(7, 1, 2, 3, uint64(0))
	f.Add(1<<31-1, 1<<31-1, 1<<31-1, 1, uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, total, a, b, c int, round uint64) {
		weights := []int{min(a, maxCount), min(b, maxCount), min(c, maxCount)}
		total = min(total, maxCount)
		parts := make([]int, len(weights))
		apportion(parts, total, weights, rounding(round))
		sum, weight := 0, 0
		for i, w := range weights {
			weight += max(0, w)
			sum += parts[i]
		}
		want := max(0, total)
		if weight == 0 {
			want = 0
		}
		if sum != want {
			t.Fatalf("%d by %v gives %v, sum %d", total, weights, parts, sum)
		}
		for i, w := range weights {
			if weight == 0 {
				break
			}
			exact := float64(want) * float64(max(0, w)) / float64(weight)
			if d := float64(parts[i]) - exact; d > 1.001 || d < -1.001 {
				t.Errorf("part %d is %d, exactly %f", i, parts[i], exact)
			}
		}
	})
}
