package node

import (
	"errors"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/limit"
)

func limitRule(requests int, scope limit.Scope) limit.Rule {
	return limit.Rule{ID: limit.ID{1}, Name: "r", Expression: "true", Period: time.Minute, RequestsPerPeriod: requests, MitigationTimeout: time.Minute, Scope: scope}.WithDefaults()
}

// limited has all nodes follow a rule.
func (w *world) limited(r limit.Rule) {
	for _, m := range w.nodes {
		m.core.limiter.follow([]limit.Rule{r}, w.now)
	}
	w.run(200 * time.Millisecond) // the exchange hears who lives
}

func (w *world) take(m *machine, client string) limit.Verdict {
	meter := m.core.Meter(limit.ID{1})
	return meter.Take(meter.Key([]byte(client)), w.now)
}

// Nodes of two sites count together, and one that finds a client above the limit has all
// others refuse from their own memory.
func TestLimitOverTheMesh(t *testing.T) {
	w := newWorld(t, testSettings(100), "a", "a", "b", "b")
	w.limited(limitRule(40, limit.Mesh))
	passed := 0
	for range 200 {
		for _, m := range w.nodes {
			if !w.take(m, "greedy").Limited {
				passed++
			}
		}
		w.run(200 * time.Millisecond)
	}
	if passed < 40 || passed > 40+16 { // 20 a second, and less than a second until all know
		t.Errorf("%d requests passed, and the limit is 40", passed)
	}
	for i, m := range w.nodes {
		if !w.take(m, "greedy").Limited {
			t.Errorf("node %d lets one pass that others limit", i)
		}
		if v := w.take(m, "other"); v.Limited {
			t.Errorf("node %d limits another client: %+v", i, v)
		}
	}
}

// Who is limited for longer than a period is so in all sites, also in those where it did
// not come before, and where what was said of it got lost.
func TestLimitLastsOverTheMesh(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w := newWorld(t, testSettings(100), "a", "a", "b", "b")
		r := limitRule(10, limit.Mesh)
		r.Period, r.MitigationTimeout = 10*time.Second, 10*time.Minute
		w.limited(r)
		for range 11 {
			w.take(w.nodes[0], "greedy")
		}
		for range 10 {
			w.take(w.nodes[0], "honest")
		}
		if lost {
			w.cut = true
			w.run(time.Second)
			w.cut = false
		}
		w.run(25 * time.Second)
		passed := 0
		for range 20 {
			for _, m := range w.nodes[2:] {
				if !w.take(m, "greedy").Limited {
					passed++
				}
			}
			w.run(500 * time.Millisecond)
		}
		if most := map[bool]int{false: 0, true: 4}[lost]; passed > most {
			t.Errorf("lost %v: %d requests pass in the other site, want at most %d", lost, passed, most)
		}
		for i, m := range w.nodes {
			if w.take(m, "honest").Limited {
				t.Errorf("lost %v: node %d limits who was not above the limit", lost, i)
			}
		}
		w.run(10 * time.Minute)
		for i, m := range w.nodes {
			if w.take(m, "greedy").Limited {
				t.Errorf("lost %v: node %d limits for longer than the timeout", lost, i)
			}
		}
	}
}

// Within the scope of a site, another site counts for itself.
func TestLimitOfASite(t *testing.T) {
	w := newWorld(t, testSettings(100), "a", "a", "b")
	w.limited(limitRule(10, limit.Site))
	for range 11 {
		w.take(w.nodes[0], "client")
	}
	w.run(time.Second)
	if !w.take(w.nodes[1], "client").Limited {
		t.Error("the other node of the site does not limit")
	}
	if w.take(w.nodes[2], "client").Limited {
		t.Error("another site limits")
	}
}

// A rule that is changed, disabled or deleted limits nobody by what it was.
func TestLimitChanges(t *testing.T) {
	w := newWorld(t, testSettings(100), "a", "a")
	r := limitRule(3, limit.Mesh)
	w.limited(r)
	for range 4 {
		w.take(w.nodes[0], "client")
	}
	w.run(time.Second)
	if !w.take(w.nodes[1], "client").Limited {
		t.Fatal("nobody is limited")
	}
	r.RequestsPerPeriod = 100
	w.limited(r)
	if v := w.take(w.nodes[1], "client"); v.Limited || v.Remaining != 96 {
		t.Errorf("got %+v after the limit was raised, want 96 remaining: the counts stay", v)
	}
	r.Disabled = true
	w.limited(r)
	if w.nodes[0].core.Meter(r.ID) != nil {
		t.Error("a rule that is disabled counts")
	}
}

// Without a rule a node keeps no tables, and takes no notice of messages about them.
func TestNoRuleNoMemory(t *testing.T) {
	w := newWorld(t, testSettings(100), "a", "a")
	for _, m := range w.nodes {
		if m.core.limiter.tables.Load() != nil {
			t.Error("there are tables without a rule")
		}
	}
}

// setLimits has an operator say at one node what the rate limits are.
func (w *world) setLimits(m *machine, change func(all []catalog.RateLimit) []catalog.RateLimit) {
	w.t.Helper()
	err := m.core.Edit(func(c *catalog.Catalog) ([]catalog.Write, error) {
		is := change(c.RateLimits())
		return c.LimitWrites(c.RateLimits(), is), catalog.CheckLimits(is, nil)
	}, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	w.post(m, nil)
}

// What a file and operators say of rate limits holds at all nodes, and what operators have
// changed does not come undone when a node starts again with its file.
func TestLimitsFollowTheCatalog(t *testing.T) {
	w := newStoppedWorld(t)
	w.catalog = true
	fromFile := limitRule(2, limit.Mesh)
	fromFile.Name = "file"
	w.limits = []limit.Rule{fromFile}
	w.begin(testSettings(100), "a", "b")
	names := func(m *machine) (all []string) {
		for _, r := range m.core.limiter.meters.Load().order {
			all = append(all, r.Rule().Name)
		}
		return all
	}
	expect := func(want ...string) {
		t.Helper()
		w.run(8 * time.Second)
		for i, m := range w.nodes {
			if got := names(m); !equalNames(got, want) {
				t.Errorf("node %d has the rate limits %q, want %q", i, got, want)
			}
		}
	}
	expect("file")
	w.setLimits(w.nodes[1], func(all []catalog.RateLimit) []catalog.RateLimit {
		r := limitRule(7, limit.Mesh)
		r.ID, r.Name = limit.ID{9}, "operator"
		all[0].Name = "renamed"
		return append([]catalog.RateLimit{{Version: 1, Created: w.now, Rule: r}}, all...)
	})
	expect("operator", "renamed")
	w.setLimits(w.nodes[0], func(all []catalog.RateLimit) []catalog.RateLimit { return all[:1] })
	expect("operator")
	w.kill(w.nodes[0])
	w.run(2 * time.Second)
	w.start(w.nodes[0], testSettings(100))
	expect("operator")
}

func equalNames(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Of two rules of one name, made at two nodes at once, the older holds; a rule that the
// front cannot use is left out.
func TestLimitsThatDoNotGoTogether(t *testing.T) {
	w := newCatalogWorld(t, testSettings(100), "a", "b")
	for i, m := range w.nodes {
		w.setLimits(m, func(all []catalog.RateLimit) []catalog.RateLimit {
			r := limitRule(7+i, limit.Mesh)
			r.ID, r.Name = limit.ID{byte(9 + i)}, "twice"
			return append(all, catalog.RateLimit{Version: 1, Created: w.now.Add(time.Duration(-i) * time.Second), Rule: r})
		})
	}
	w.run(5 * time.Second)
	for i, m := range w.nodes {
		order := m.core.limiter.meters.Load().order
		if len(order) != 1 || order[0].Rule().RequestsPerPeriod != 8 {
			t.Errorf("node %d counts for %d rules", i, len(order))
		}
		refused := m.core.refusedStatus()
		if len(refused) != 1 || refused[0].Limit != "twice" {
			t.Errorf("node %d has left out %+v", i, refused)
		}
	}
	m := w.nodes[0].core
	m.catalog.CheckLimit = func(*limit.Rule) (int, error) { return 0, errors.New("cannot be asked") }
	w.setLimits(w.nodes[0], func(all []catalog.RateLimit) []catalog.RateLimit { return all[:1] })
	w.run(time.Second)
	if n := len(m.limiter.meters.Load().order); n != 0 {
		t.Errorf("%d rules count that cannot be asked", n)
	}
}

// A node that stood still reads at once what came meanwhile. Who came as often as it may is
// not limited for that, there or elsewhere; who came more often has the limit once more.
func TestLimitAfterAStandstill(t *testing.T) {
	w := newWorld(t, testSettings(100), "a", "a")
	r := limitRule(100, limit.Mesh)
	r.Period, r.MitigationTimeout = 10*time.Second, 0
	w.limited(r)
	m, other := w.nodes[0], w.nodes[1]
	come := func(d time.Duration) { // four times a second to each node
		for range d / (250 * time.Millisecond) {
			for _, n := range w.nodes {
				if !n.stopped && w.take(n, "honest").Limited {
					t.Fatal("who keeps to the limit is limited")
				}
			}
			w.run(250 * time.Millisecond)
		}
	}
	come(20 * time.Second)
	m.stopped = true
	w.members()
	come(20 * time.Second)
	m.stopped = false
	passed := 0
	for i := range 80 { // that waited; the first of them are read before the node looks around
		if i == 20 {
			w.members()
			w.run(20 * time.Millisecond)
		}
		if w.take(m, "honest").Limited {
			t.Fatal("who kept to the limit is limited for what was read late")
		}
	}
	for range 500 {
		if !w.take(m, "greedy").Limited {
			passed++
		}
	}
	if passed != 200 {
		t.Errorf("%d requests pass of who goes on, want 100 that may have waited and 100", passed)
	}
	come(15 * time.Second)
	for range 101 {
		w.take(m, "late")
	}
	w.run(time.Second)
	if !w.take(m, "late").Limited || !w.take(other, "late").Limited {
		t.Error("the limit does not hold after a while")
	}
}

// TestWhoHasNotToldIsNamed: a node that starts says of whom it does not know the counts, until it does.
func TestWhoHasNotToldIsNamed(t *testing.T) {
	w := newStoppedWorld(t)
	w.limits = []limit.Rule{limitRule(10, limit.Mesh)}
	w.begin(testSettings(100), "a", "a", "b")
	starts, silent := w.nodes[0], w.nodes[2]
	w.kill(starts)
	w.lose = func(l letter) bool { return l.from == silent.id && l.m.Kind == kindLimitKnown }
	w.start(starts, testSettings(100))
	w.run(5 * time.Second)
	if ids := starts.core.limiter.health.awaits.Load(); ids == nil || len(*ids) != 1 || (*ids)[0] != silent.id {
		t.Errorf("it awaits %v, want the one that is silent", ids)
	}
	w.lose = nil
	w.run(5 * time.Second)
	if ids := starts.core.limiter.health.awaits.Load(); ids != nil {
		t.Errorf("all have told, and it awaits %v", *ids)
	}
}
