//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/node"
)

// A rate limit over a mesh of three sites of two nodes, in periods of the clock.
const (
	limitPeriod  = 4 * time.Second
	limitPerTime = 40 // in a period
	greedyRate   = 60 // requests a second of the client that asks too often
	honestRate   = 8  // of who keeps to the limit
	clientField  = "X-Client"
)

const limitConfig = `
total-active-users: 100000
new-users-per-minute: 1000000
suspended: true
rate-limits:
  - name: clients
    expression: "true"
    characteristics: ['http.request.headers["x-client"]']
    period: %s
    requests-per-period: %d
`

// counted is the site behind the mesh, which counts what reaches it.
type counted struct {
	mu   sync.Mutex               // guards the following
	came map[string]map[int64]int // requests by client and period
}

// period returns the number of the period in which a time lies.
func period(t time.Time) int64 { return t.UnixNano() / int64(limitPeriod) }

func (c *counted) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	who := r.Header.Get(clientField)
	if c.came[who] == nil {
		c.came[who] = map[int64]int{}
	}
	c.came[who][period(time.Now())]++
}

// TestALimitHoldsOnBothSidesOfACut cuts a site off while one client comes far too often, evenly to all nodes. Of all
// faults that is the one that lets most pass: each side counts for itself. bench/limits has many more, in virtual time.
func TestALimitHoldsOnBothSidesOfACut(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes most of a minute")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "ropeline.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, limitConfig, limitPeriod, limitPerTime), 0o600); err != nil {
		t.Fatal(err)
	}
	site := &counted{came: map[string]map[int64]int{}}
	names := []string{"a1", "a2", "b1", "b2", "c1", "c2"}
	m, err := rig.NewMesh(rig.Config{Binary: built, Dir: dir, Names: names, Args: []string{"--config", config}, Origin: site}, rig.NewLoopback(1))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range m.Nodes {
		err := n.Await(t.Context(), 20*time.Second, "counts for the rule, with all others", func(s node.Status) bool {
			return len(s.Limits.Rules) == 1 && s.Limits.Rules[0].Bound.Nodes == len(names)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	greedy := newClient("greedy", greedyRate, m.Nodes...)
	honest := []*client{newClient("honest", honestRate, m.Nodes...), newClient("honest at one node", honestRate, m.Node("b2"))}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, c := range append(honest, greedy) {
		wg.Go(func() { c.come(ctx) })
	}
	time.Sleep(2 * limitPeriod)
	s, err := m.Nodes[0].Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	if err := m.Net.CutSite("a"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * limitPeriod / 2) // so that whole periods lie within it
	if err := m.Net.Heal(); err != nil {
		t.Fatal(err)
	}
	to := time.Now().Add(limitPeriod)
	time.Sleep(3 * limitPeriod)
	stop()
	wg.Wait()

	// What nodes say may pass beyond the limit, until all have heard of a request.
	excess := int(math.Ceil(s.Limits.Rules[0].Bound.DelaySeconds * greedyRate))
	most := 0 // while the mesh was cut
	for at, n := range site.came[greedy.name] {
		may := limitPerTime + excess
		if period(from) <= at && at <= period(to) {
			may += limitPerTime
			most = max(most, n)
		}
		if n > may {
			t.Errorf("%d requests reached the site in a period, and %d may", n, may)
		}
	}
	if most < 3*limitPerTime/2 || greedy.limited.Load() == 0 {
		t.Errorf("%d reached the site in a period while the mesh was cut, and %d were limited: was it cut?", most, greedy.limited.Load())
	}
	for _, c := range honest {
		if c.limited.Load() > 0 || c.sent < 100 {
			t.Errorf("%d of %d requests of %s, which keeps to the limit, were limited", c.limited.Load(), c.sent, c.name)
		}
	}
	for _, c := range append(honest, greedy) {
		if n := c.odd.Load(); n > 0 {
			t.Errorf("%d requests of %s got neither the site nor 429", n, c.name)
		}
	}
}

// TestRestartsGiveNoLimitOnceMore kills or stops the only node of each of three sites in turn, and starts it again, within a period of a day:
// what others know of a client outlives that.
func TestRestartsGiveNoLimitOnceMore(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a quarter of a minute")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "ropeline.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, limitConfig, 24*time.Hour, limitPerTime), 0o600); err != nil {
		t.Fatal(err)
	}
	site := &counted{came: map[string]map[int64]int{}}
	m, err := rig.NewMesh(rig.Config{Binary: built, Dir: dir, Names: []string{"a1", "b1", "c1"}, Args: []string{"--config", config}, Origin: site}, rig.NewLoopback(1))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	together := func(n *rig.Node) {
		t.Helper()
		err := n.Await(t.Context(), 20*time.Second, "counts for the rule, with all others", func(s node.Status) bool {
			return s.Ready && len(s.Limits.Rules) == 1 && s.Limits.Rules[0].Bound.Nodes == len(m.Nodes)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range m.Nodes {
		together(n)
	}
	s, err := m.Nodes[0].Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	greedy := newClient("greedy", greedyRate, m.Nodes...)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { greedy.come(ctx) })
	time.Sleep(2 * time.Second) // until it has had its limit
	for i, n := range m.Nodes {
		end := n.Kill
		if i%2 == 1 {
			end = n.Stop
		}
		if err := errors.Join(end(), n.Start()); err != nil {
			t.Fatal(err)
		}
		for _, n := range m.Nodes {
			together(n)
		}
		time.Sleep(time.Second)
	}
	stop()
	wg.Wait()
	total := 0
	for _, n := range site.came[greedy.name] {
		total += n
	}
	if most := limitPerTime + int(math.Ceil(s.Limits.Rules[0].Bound.DelaySeconds*greedyRate)); total < limitPerTime || total > most {
		t.Errorf("%d requests reached the site, and %d to %d may", total, limitPerTime, most)
	}
}

// client comes to nodes in turn, at an even rate, whether they answer or not.
type client struct {
	name  string
	every time.Duration
	nodes []*rig.Node
	http  http.Client

	sent         int
	limited, odd atomic.Int64
}

func newClient(name string, perSecond int, nodes ...*rig.Node) *client {
	return &client{
		name: name, every: time.Second / time.Duration(perSecond), nodes: nodes,
		http: http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 8}},
	}
}

// come sends requests until ctx ends.
func (c *client) come(ctx context.Context) {
	defer c.http.CloseIdleConnections()
	var under sync.WaitGroup
	defer under.Wait()
	start := time.Now()
	for ; rig.Sleep(ctx, time.Until(start.Add(time.Duration(c.sent)*c.every))) == nil; c.sent++ {
		n := c.nodes[c.sent%len(c.nodes)]
		under.Go(func() { c.ask(n) })
	}
}

func (c *client) ask(n *rig.Node) {
	req, err := http.NewRequest(http.MethodGet, "http://"+n.Place.HTTP+"/", nil)
	if err != nil {
		panic(fmt.Sprintf("a request to %s: %v", n.Place.HTTP, err))
	}
	req.Header.Set(clientField, c.name)
	resp, err := c.http.Do(req)
	if err != nil {
		c.odd.Add(1)
		return
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusTooManyRequests:
		c.limited.Add(1)
	default:
		c.odd.Add(1)
	}
}
