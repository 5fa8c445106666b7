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
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/udp"
	"github.com/ropeline/ropeline/node"
)

// Rate limits over a mesh of three sites of two nodes, to which clients come while it is hurt. The site behind the
// mesh counts what reaches it.

const (
	limitRate   = 10 // requests a second that the limit allows
	greedyRate  = 60 // requests a second of the client that asks too often
	honestRate  = 8  // of who keeps to the limit
	clientField = "X-Client"
)

// limitUnits are those of runs with a rate limit.
var limitUnits = slices.Concat(units[:3], []measurement.Unit{
	{Name: "limit", Meaning: "requests in a period that the limit allows"},
	{Name: "before", Meaning: "the most requests of the client that asks too often that reached the site in a period before the fault"},
	{Name: "meanwhile", Meaning: "the same from its beginning to a period after its end"},
	{Name: "after", Meaning: "the same after that"},
	{Name: "may", Meaning: "how many may before and after: the limit, and what comes until all have heard of a request"},
	{Name: "may-meanwhile", Meaning: "how many may meanwhile: the limit for each part of the mesh that counts for itself"},
	{Name: "honest", Meaning: "requests of others, who keep to the limit"},
	{Name: "honest-limited", Meaning: "of these, limited", Better: "lower", Exact: true},
}, units[len(units)-1:])

// limitScenarios are the faults in which rate limits with a period are tried.
func limitScenarios(period time.Duration) []scenario {
	lasts := 5 * period / 2 // so that whole periods lie within it
	bent := func(how func(rig.Network) error) func(*run) {
		return func(r *run) {
			rig.Must(how(r.mesh.Net))
			r.sleep(lasts)
			rig.Must(r.mesh.Net.Heal())
		}
	}
	cut := func(sites ...[2]string) func(*run) {
		return bent(func(n rig.Network) (err error) {
			for _, s := range sites {
				err = errors.Join(err, n.CutSites(s[0], s[1]))
			}
			return err
		})
	}
	all := []scenario{
		{Name: "P1", Fault: "none, in periods of a minute", Period: time.Minute, Parts: 1},
		{Name: "P2", Fault: "none", Parts: 1},
		{Name: "P3", Fault: "every node killed, one after the other", Injected: "kill −9, started again at once", Script: rollingKill(period), Parts: 2}, // which is sure to meet the owners of the keys
		{Name: "P4", Fault: "a node killed, and not started again", Injected: "kill −9", Script: func(r *run) {
			r.kill(r.mesh.Node("b1"))
			r.sleep(lasts)
		}, Parts: 2},
		{Name: "P5", Fault: "a node stopped, then woken", Injected: "SIGSTOP, SIGCONT", Script: func(r *run) { r.pause(r.mesh.Node("b1"), lasts) }, Parts: 3},
		{Name: "P6", Fault: "a site cut off, then healed", Injected: "links taken down", Script: cut([2]string{"a", "b"}, [2]string{"a", "c"}), Parts: 2},
		{Name: "P7", Fault: "all sites cut apart, then healed", Injected: "links taken down", Script: cut([2]string{"a", "b"}, [2]string{"a", "c"}, [2]string{"b", "c"}), Parts: 3},
		{Name: "P8", Fault: "a node cut off inside its site, then healed", Injected: "port of the switch taken down", Script: bent(func(n rig.Network) error { return n.CutNode("b1") }), Parts: 2},
		{Name: "P9", Fault: "one direction of one link lost", Injected: "blackhole route", Script: bent(func(n rig.Network) error { return n.CutOneWay("b1", "b2") }), Parts: 2},
		{Name: "P10", Fault: "20 % of packets lost, 5 % doubled, 5 % late by 100 ms, 20 ms of delay", Injected: "UDP proxies", Script: bent(func(n rig.Network) error { return n.Shape(udp.Bent(0.2)) }), Parts: 2},
		{
			Name: "P11", Fault: "clocks a minute ahead and a minute behind", Injected: "shifted clocks", Parts: 1,
			Node: map[string][]string{"a1": {"--fault-clock-skew=63.7s"}, "c2": {"--fault-clock-skew=-58.1s"}},
		},
	}
	for i := range all {
		s := &all[i]
		if s.Nodes, s.Cuts = []string{"a1", "a2", "b1", "b2", "c1", "c2"}, s.Name != "P10"; s.Period == 0 {
			s.Period = period
		}
	}
	return all
}

// limited is a run with a rate limit: who comes, and what has reached the site.
type limited struct {
	period  time.Duration
	parts   int // as scenario has it
	bound   node.LimitBound
	clients []*client
	from    time.Time // when the fault began; zero: there is none
	to      time.Time // when it was over, and a period had passed since

	mu   sync.Mutex               // guards the following
	came map[string]map[int64]int // requests at the site by client and period of the clock
}

func newLimited(period time.Duration, parts int) *limited {
	return &limited{period: period, parts: parts, came: map[string]map[int64]int{}}
}

// limit is how many requests are allowed in a period.
func (l *limited) limit() int { return limitRate * int(l.period.Seconds()) }

// args are those of each node, whose configuration is in a folder.
func (l *limited) args(dir string) ([]string, error) {
	config := filepath.Join(dir, "ropeline.yaml")
	return []string{"--config", config}, os.WriteFile(config, fmt.Appendf(nil, `
total-active-users: 100000
new-users-per-minute: 1000000
suspended: true
rate-limits:
  - name: clients
    expression: "true"
    characteristics: ['http.request.headers["x-client"]']
    period: %s
    requests-per-period: %d
`, l.period, l.limit()), 0o600)
}

// ServeHTTP is the site.
func (l *limited) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	who := r.Header.Get(clientField)
	if l.came[who] == nil {
		l.came[who] = map[int64]int{}
	}
	l.came[who][l.number(time.Now())]++
}

// number returns the number of the period in which a time lies.
func (l *limited) number(t time.Time) int64 { return t.UnixNano() / int64(l.period) }

// sufferLimited has clients come while the script hurts the mesh.
func (r *run) sufferLimited() {
	l := r.limited
	for _, n := range r.mesh.Nodes {
		r.await(n, 20*time.Second, "counts for the rule, with all others", func(s node.Status) bool {
			return len(s.Limits.Rules) == 1 && s.Limits.Rules[0].Bound.Nodes == len(r.mesh.Nodes)
		})
	}
	l.clients = []*client{
		newClient("greedy", greedyRate, r.mesh.Net, r.mesh.Nodes...),
		newClient("honest", honestRate, r.mesh.Net, r.mesh.Nodes...),
		newClient("honest at one node", honestRate, r.mesh.Net, r.mesh.Node("b2")),
	}
	ctx, stop := context.WithCancel(r.ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for _, c := range l.clients {
		wg.Go(func() { c.come(ctx) })
	}
	r.sleep(2 * l.period)
	l.bound = r.status(r.mesh.Nodes[0]).Limits.Rules[0].Bound
	if r.Script == nil {
		r.sleep(2 * l.period)
		return
	}
	l.from = time.Now()
	r.Script(r)
	l.to = time.Now().Add(l.period)
	r.sleep(3 * l.period)
}

// stages of a run, by periods of the clock.
const (
	before = iota
	meanwhile
	after
	stages
)

// most returns how many requests of a client reached the site in a period of each stage at
// most.
func (l *limited) most(who string) (most [stages]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for period, n := range l.came[who] {
		stage := before
		if !l.from.IsZero() && period >= l.number(l.from) {
			stage = meanwhile
		}
		if !l.to.IsZero() && period > l.number(l.to) {
			stage = after
		}
		most[stage] = max(most[stage], n)
	}
	return most
}

// allowed returns how many requests may reach the site in a period of each stage: the limit, and what nodes say may
// pass beyond it at the rate of the client that asks too often.
func (l *limited) allowed() [stages]int {
	excess := int(math.Ceil(l.bound.DelaySeconds * greedyRate))
	usual := l.limit() + excess
	return [stages]int{usual, l.parts*l.limit() + excess, usual}
}

// broken says what did not hold.
func (l *limited) broken() (why []string) {
	if l.clients == nil { // it has not come to that
		return nil
	}
	allowed := l.allowed()
	for stage, n := range l.most(l.clients[0].name) {
		if n > allowed[stage] {
			why = append(why, fmt.Sprintf("%d reached the site in a period, and %d may", n, allowed[stage]))
		}
	}
	if l.clients[0].limited.Load() == 0 {
		why = append(why, "the limit was not felt")
	}
	for _, c := range l.clients[1:] {
		if n := c.limited.Load(); n > 0 {
			why = append(why, fmt.Sprintf("%d requests of %s were limited", n, c.name))
		}
	}
	for _, c := range l.clients {
		if n := c.odd.Load(); n > 0 {
			why = append(why, fmt.Sprintf("%d requests of %s got neither the site nor 429", n, c.name))
		}
	}
	return why
}

// put puts down the values of the run's row.
func (l *limited) put(v measurement.Values) {
	if l.clients == nil {
		return
	}
	most, allowed := l.most(l.clients[0].name), l.allowed()
	v["limit"], v["before"], v["may"] = float64(l.limit()), float64(most[before]), float64(allowed[before])
	if !l.from.IsZero() {
		v["meanwhile"], v["may-meanwhile"], v["after"] = float64(most[meanwhile]), float64(allowed[meanwhile]), float64(most[after])
	}
	for _, c := range l.clients[1:] {
		v["honest"] += float64(c.sent.Load())
		v["honest-limited"] += float64(c.limited.Load())
	}
}

// client comes to nodes in turn, at an even rate, whether they answer or not.
type client struct {
	name  string
	every time.Duration
	nodes []*rig.Node
	http  http.Client

	sent, limited, odd atomic.Int64
}

func newClient(name string, perSecond int, network rig.Network, nodes ...*rig.Node) *client {
	return &client{
		name: name, every: time.Second / time.Duration(perSecond), nodes: nodes,
		http: http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DialContext: network.Dial, MaxIdleConnsPerHost: 8}},
	}
}

// come sends requests until ctx ends.
func (c *client) come(ctx context.Context) {
	defer c.http.CloseIdleConnections()
	var under sync.WaitGroup
	defer under.Wait()
	start := time.Now()
	for i := 0; rig.Sleep(ctx, time.Until(start.Add(time.Duration(i)*c.every))) == nil; i++ {
		under.Go(func() { c.ask(c.nodes[i%len(c.nodes)]) })
	}
}

func (c *client) ask(n *rig.Node) {
	c.sent.Add(1)
	req, err := http.NewRequest("GET", "http://"+n.Place.HTTP+"/", nil)
	if err != nil {
		panic(fmt.Sprintf("a request to %s: %v", n.Place.HTTP, err))
	}
	req.Header.Set(clientField, c.name)
	resp, err := c.http.Do(req)
	if err != nil {
		return // the node does not run
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusServiceUnavailable: // or it has been started, and knows of no room yet
	case http.StatusTooManyRequests:
		c.limited.Add(1)
	default:
		c.odd.Add(1)
	}
}
