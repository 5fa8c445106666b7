package node

import (
	"cmp"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/transport"
)

// Meter counts for one rate limit rule. Any goroutine may use it.
type Meter struct {
	counter *limit.Counter
	tables  *limitTables
	still   *standstill
}

// Meter returns what counts for a rate limit rule; nil if this node has no such rule, or
// it is disabled. It is good until the rules change. Any goroutine may call it.
func (c *Core) Meter(id limit.ID) *Meter { return c.limiter.meters.Load().byID[id] }

// Rule returns the rule. It is for reading.
func (m *Meter) Rule() *limit.Rule { return &m.counter.Rule }

// Key returns what requests with some values of the rule's characteristics count under.
// values is a form of them in which two that differ are never alike.
func (m *Meter) Key(values []byte) limit.Key { return m.counter.Key(values) }

// Take counts a request, unless it is limited.
func (m *Meter) Take(k limit.Key, now time.Time) limit.Verdict {
	return m.ask(k, (*limit.Table).Take, true, now)
}

// Peek says whether a request would be limited, and counts nothing.
func (m *Meter) Peek(k limit.Key, now time.Time) limit.Verdict {
	return m.ask(k, (*limit.Table).Peek, false, now)
}

// Check says whether a request is limited that does not count.
func (m *Meter) Check(k limit.Key, now time.Time) limit.Verdict {
	return m.ask(k, (*limit.Table).Check, false, now)
}

// Count counts a request that was let pass.
func (m *Meter) Count(k limit.Key, now time.Time) limit.Verdict {
	return m.ask(k, (*limit.Table).Count, true, now)
}

func (m *Meter) ask(k limit.Key, what func(*limit.Table, limit.Key, *limit.Terms, limit.Millis) limit.Verdict, counts bool, now time.Time) limit.Verdict {
	s, at := m.tables.of(k), limit.MillisOf(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.still.waited(at) {
		if v := s.table.Look(k, &m.counter.Terms, at); v.Limited || m.still.pass(k, &m.counter.Terms, counts, at) {
			return v
		}
	}
	return what(&s.table, k, &m.counter.Terms, at)
}

// Report tells what this node knows of a key, and what becomes of its next request, which counts or does not; ok is
// false if it knows nothing.
func (m *Meter) Report(k limit.Key, counts bool, now time.Time) (rep limit.Report, ok bool) {
	m.tables.Of(k, func(t *limit.Table) { rep, ok = t.Report(k, &m.counter.Terms, counts, limit.MillisOf(now)) })
	return rep, ok
}

// LimitsStatus is what a node counts for rate limits.
type LimitsStatus struct {
	Rules []LimitStatus `json:"rules"` // those that count, in the order in which they are asked

	MemoryBytes int `json:"memory_bytes"` // that counting may take
	Keys        int `json:"keys"`         // for which there is room; 0: there is no rule

	// Awaits are the names of nodes that have not told this one, since it started, all that they have counted: of the keys
	// that they know, up to a limit may pass once more. None: left out.
	Awaits []string `json:"awaits,omitempty"`

	// What went wrong since the start.
	Replaced uint64 `json:"replaced"` // keys that were forgotten too early, for others
	Lost     uint64 `json:"lost"`     // requests that others have not heard of
	Refused  uint64 `json:"refused"`  // messages about counts that made no sense
}

// LimitStatus is one rate limit rule as this node counts it.
type LimitStatus struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Scope   string     `json:"scope"`
	Keys    int        `json:"keys"`    // that were asked about within two periods
	Limited int        `json:"limited"` // those of them that are limited
	Bound   LimitBound `json:"bound"`
}

// LimitBound is by how much the requests of a key can be more than the limit within a
// period, because one node hears later than another.
type LimitBound struct {
	DelaySeconds float64 `json:"delay_seconds"` // so much of what comes may be more
	Nodes        int     `json:"nodes"`         // that count together
	Most         int     `json:"most"`          // requests, whatever the rate
}

// limitsStatus tells of the rules that count.
func (n *Node) limitsStatus() LimitsStatus {
	l := n.core.limiter
	s := LimitsStatus{
		Rules: []LimitStatus{}, MemoryBytes: l.memory,
		Replaced: l.health.replaced.Load(), Lost: l.health.lost.Load(), Refused: l.health.refused.Load(),
	}
	if l.tables.Load() != nil {
		s.Keys = l.room
	}
	if ids := l.health.awaits.Load(); ids != nil {
		s.Awaits = n.peerNames(*ids)
	}
	seen := *l.seen.Load()
	for _, m := range l.meters.Load().order {
		r := m.Rule()
		b := n.LimitBound(r)
		s.Rules = append(s.Rules, LimitStatus{
			ID: r.ID.String(), Name: r.Name, Scope: string(r.Scope), Keys: seen[r.ID].Live, Limited: seen[r.ID].Limited,
			Bound: LimitBound{b.Delay.Seconds(), b.Nodes, b.Most},
		})
	}
	return s
}

// peerNames returns what some peers are called. Any goroutine may call it.
func (n *Node) peerNames(ids []crdt.NodeID) (names []string) {
	called := map[crdt.NodeID]string{}
	if m := n.mesh.Load(); m != nil {
		for _, p := range (*m).Members() {
			called[crdt.NodeID(p.ID)] = p.Name
		}
	}
	for _, id := range ids {
		names = append(names, cmp.Or(called[id], id.String()))
	}
	return names
}

// LimitBound returns by how much more than the limit of a rule can pass, as far as this
// node knows: from the nodes that live, and how far they are.
func (n *Node) LimitBound(r *limit.Rule) limit.Bound {
	m := n.mesh.Load()
	if m == nil {
		return limit.NewBound(r, 1, 1, 0, 0)
	}
	nodes := 1
	var near, far time.Duration
	sites := map[string]bool{n.cfg.Site: true}
	for _, p := range (*m).Members() {
		if p.State != transport.Alive || p.Site != n.cfg.Site && r.Scope != limit.Mesh {
			continue
		}
		nodes++
		sites[p.Site] = true
		rtt, _ := (*m).RTT(p.ID)
		if p.Site == n.cfg.Site {
			near = max(near, rtt)
		} else {
			far = max(far, rtt)
		}
	}
	return limit.NewBound(r, nodes, len(sites), near, far)
}

// Meter returns what counts for a rate limit rule; see Core.Meter.
func (n *Node) Meter(id limit.ID) *Meter { return n.core.Meter(id) }
