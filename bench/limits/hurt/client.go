//go:build linux

package hurt

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

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

// site counts what reaches it, by client and period of the clock.
type site struct {
	period time.Duration

	mu   sync.Mutex // guards the following
	came map[string]map[int64]int
}

func newSite(period time.Duration) *site {
	return &site{period: period, came: map[string]map[int64]int{}}
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := r.Header.Get(clientField)
	if s.came[who] == nil {
		s.came[who] = map[int64]int{}
	}
	s.came[who][s.number(time.Now())]++
}

// number returns the number of the period in which a time lies.
func (s *site) number(t time.Time) int64 { return t.UnixNano() / int64(s.period) }
