package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/limit"
)

func limitRule(requests int, scope limit.Scope) limit.Rule {
	return limit.Rule{ID: limit.ID{1}, Name: "r", Expression: "true", Period: time.Minute, RequestsPerPeriod: requests, MitigationTimeout: time.Minute, Scope: scope}.WithDefaults()
}

// limited has all nodes follow a rule.
func (w *world) limited(r limit.Rule) {
	for _, m := range w.nodes {
		m.core.limiter.memory = 1 << 20
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
