package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

var (
	limitPeriod  = flag.Duration("limit-period", 6*time.Second, "the period of the limit of 600 a minute, in which 10 a second may come")
	limitPeriods = flag.Int("limit-periods", 3, "for how many periods clients come")
)

// client comes to nodes in turn, at an even rate.
type client struct {
	name   string
	every  time.Duration
	passed map[int64]int // by the number of the period
	sent   int
	failed int // not answered, as by a node that was killed
	other  map[int]int
}

// TestRateLimitOverTheMesh has one client come far too often, spread evenly over six nodes
// of three sites, and another one that keeps to the limit. A node is killed meanwhile, and
// starts again.
func TestRateLimitOverTheMesh(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	perPeriod := int(limitPeriod.Seconds() * 10)
	file := filepath.Join(t.TempDir(), "ropeline.yaml")
	text := fmt.Sprintf(`
total-active-users: 100000
new-users-per-minute: 1000000
suspended: true
rate-limits:
  - name: clients
    expression: "true"
    characteristics: ['http.request.headers["x-client"]']
    period: %s
    requests-per-period: %d
`, limitPeriod, perPeriod)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	nodes := meshOf(t, startOrigin(t), []string{"a", "a", "b", "b", "c", "c"}, but(3), "--config", file)
	for _, p := range nodes {
		p.await("counts for the rule, with all others", 20*time.Second, func(s node.Status) bool {
			return len(s.Limits.Rules) == 1 && s.Limits.Rules[0].Bound.Nodes == len(nodes)
		})
	}
	status, err := nodes[0].status()
	if err != nil {
		t.Fatal(err)
	}
	bound := status.Limits.Rules[0].Bound
	greedy := &client{name: "greedy", every: time.Second / 60}
	honest := &client{name: "honest", every: time.Second * 10 / 80} // eight tenths of the limit
	var wg sync.WaitGroup
	begun := time.Now()
	end := begun.Add(time.Duration(*limitPeriods) * *limitPeriod)
	for _, c := range []*client{greedy, honest} {
		wg.Go(func() { c.come(nodes, end) })
	}
	killed := begun.Add(end.Sub(begun) / 2)
	time.Sleep(time.Until(killed)) // the clients are what is waited for
	nodes[3].kill()
	nodes[3].start()
	wg.Wait()

	if honest.other[http.StatusTooManyRequests] > 0 {
		t.Errorf("%d of %d requests of who keeps to eight tenths of the limit were limited", honest.other[http.StatusTooManyRequests], honest.sent)
	}
	rate := float64(greedy.sent) / end.Sub(begun).Seconds()
	excess := int(rate*bound.DelaySeconds) + 1
	for period, n := range greedy.passed {
		most := perPeriod + excess
		if period == killed.UnixNano()/int64(*limitPeriod) {
			most += perPeriod // what the node that was killed had counted may come once more
		}
		if n > most {
			t.Errorf("%d requests passed in a period, and the limit is %d, with %d more at %.0f a second and a delay of %v s", n, perPeriod, most-perPeriod, rate, bound.DelaySeconds)
		}
	}
	if len(greedy.passed) < *limitPeriods || greedy.other[http.StatusTooManyRequests] == 0 {
		t.Errorf("the limit was not felt: %+v", greedy)
	}
	_, figures := nodes[0].metrics()
	const of = `limit="clients"}`
	for _, name := range []string{"ropeline_limit_keys{", "ropeline_limit_limited_keys{"} {
		if _, there := figures[name+of]; !there {
			t.Errorf("%s%s is not there", name, of)
		}
	}
	if figures[`ropeline_limit_requests_total{action="block",`+of] < 1 || figures["ropeline_limit_delay_seconds{"+of] <= 0 ||
		figures["ropeline_limit_excess_requests{"+of] < float64(perPeriod) {
		t.Errorf("the metrics of the limit are not as wanted: %v", figures)
	}
	t.Logf("limit %d in %v; %.0f requests a second over %d nodes; bound %d more (delay %v s); passed by period %v; refused %v; not answered %d; honest: %d sent, other %v, not answered %d",
		perPeriod, *limitPeriod, rate, len(nodes), excess, bound.DelaySeconds, greedy.passed, greedy.other, greedy.failed, honest.sent, honest.other, honest.failed)
}

// come sends requests until the end.
func (c *client) come(nodes []*running, end time.Time) {
	c.passed, c.other = map[int64]int{}, map[int]int{}
	hc := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	defer hc.CloseIdleConnections()
	ticker := time.NewTicker(c.every)
	defer ticker.Stop()
	for i := 0; ; i++ {
		now := <-ticker.C
		if now.After(end) {
			return
		}
		c.sent++
		req, err := http.NewRequest("GET", "http://"+nodes[i%len(nodes)].http+"/", nil)
		if err != nil {
			panic(err)
		}
		req.Header.Set("X-Client", c.name)
		resp, err := hc.Do(req)
		if err != nil {
			c.failed++
			continue
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			c.passed[time.Now().UnixNano()/int64(*limitPeriod)]++
		} else {
			c.other[resp.StatusCode]++
		}
	}
}
