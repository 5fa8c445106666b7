package server

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
)

// failingSite is a site that does as a test says.
type failingSite struct {
	delay  atomic.Int64 // of each answer
	fails  atomic.Int64 // of so many requests the last is answered with 500; 0: none is
	down   atomic.Bool  // connections are cut
	asked  atomic.Int64 // requests of visitors
	probes atomic.Int64
}

// heal ends all trouble.
func (s *failingSite) heal() {
	s.delay.Store(0)
	s.fails.Store(0)
	s.down.Store(false)
}

func (s *failingSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isProbe := r.Method == http.MethodHead
	if isProbe {
		s.probes.Add(1)
	}
	if s.down.Load() {
		panic(http.ErrAbortHandler)
	}
	if isProbe {
		return
	}
	n := s.asked.Add(1)
	time.Sleep(time.Duration(s.delay.Load()))
	if every := s.fails.Load(); every > 0 && n%every == 0 {
		http.Error(w, "no", http.StatusInternalServerError)
		return
	}
	io.WriteString(w, "bread")
}

// visitor is a browser that keeps its cookie.
type visitor struct {
	t      *testing.T
	at     string
	cookie string
}

func (v *visitor) ask() (code int, waits bool) {
	v.t.Helper()
	req := must(http.NewRequest(http.MethodGet, "http://"+v.at+"/", nil))
	if v.cookie != "" {
		req.Header.Set("Cookie", v.cookie)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	noError(v.t, err)
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	for _, c := range resp.Cookies() {
		v.cookie = c.Name + "=" + c.Value
	}
	return resp.StatusCode, resp.Header.Get("Ropeline-State") == "waiting"
}

// TestOriginSlowFailingDownAndBack: each is seen in status, metrics and what the dashboard shows; nobody new is let in
// while the site is down, and once it is back, which the node finds out by itself, only a part of those who wait at first.
func TestOriginSlowFailingDownAndBack(t *testing.T) {
	t.Parallel()
	site := &failingSite{}
	cfg := example(t, site, 1000)
	cfg.Rooms[0].RefreshInterval = time.Second
	node, _ := start(t, cfg)
	awaitReady(t, node)
	at, admin := node.Addresses().Visitors, node.Addresses().Admin
	inside := &visitor{t: t, at: at}
	seen := func(what string, is func(o *dashboard.Origin) bool) {
		t.Helper()
		await(t, "the dashboard to show that the site is "+what, func() bool {
			text, _ := visit(t, admin+"/api/v1/mesh")
			var mesh dashboard.Snapshot
			if err := json.Unmarshal([]byte(text), &mesh); err != nil || len(mesh.Nodes) == 0 {
				t.Fatalf("%v: %.500s", err, text)
			}
			origins := mesh.Nodes[0].Origins
			return len(origins) == 1 && is(&origins[0])
		})
	}
	up := func(value string) {
		t.Helper()
		text, _ := visit(t, admin+"/metrics")
		if want := `ropeline_origin_up{origin="` + cfg.Proxy.Origins.Servers[0].String() + `",room=""} ` + value; !strings.Contains(text, want) {
			t.Errorf("the metrics do not say %s", want)
		}
	}
	for _, c := range []struct {
		what  string
		begin func()
		asks  int // before it is seen
		is    func(o *dashboard.Origin) bool
	}{
		{"well", func() {}, 10, func(o *dashboard.Origin) bool { return o.State == "in" && o.ErrorRate == 0 && o.LastFailure == nil }},
		{"slow", func() { site.delay.Store(int64(50 * time.Millisecond)) }, 20, func(o *dashboard.Origin) bool {
			return o.P50 >= 50*time.Millisecond && o.P99 >= o.P50
		}},
		{"failing", func() { site.fails.Store(2) }, 60, func(o *dashboard.Origin) bool {
			return o.State == "in" && o.ErrorRate > 0.25 && o.LastFailure != nil && o.LastFailure.Text == "status 500"
		}},
		{"down", func() {
			up("1")
			site.down.Store(true)
		}, 8, func(o *dashboard.Origin) bool {
			return o.SiteDown && o.State != "in" && o.LastFailure != nil && o.LastFailure.Text != "status 500"
		}},
	} {
		site.heal()
		c.begin()
		for range c.asks {
			inside.ask()
		}
		seen(c.what, c.is)
	}
	up("0")
	var waiting []*visitor
	for range 50 {
		v := &visitor{t: t, at: at}
		if code, waits := v.ask(); !waits || code != http.StatusOK {
			t.Fatalf("somebody new is let in to a site that is down: %d", code)
		}
		waiting = append(waiting, v)
	}
	if code, waits := inside.ask(); code != http.StatusBadGateway || waits {
		t.Errorf("who is on the site gets %d, waits %v", code, waits)
	}

	before := site.asked.Load()
	probes := site.probes.Load()
	began := time.Now() // at the latest: growth begins after it
	site.heal()
	seen("back", func(o *dashboard.Origin) bool { return o.State == "in" && !o.SiteDown })
	if site.asked.Load() != before || site.probes.Load() == probes {
		t.Error("the site is taken for back without a probe, or by a visitor")
	}
	// Whoever waits asks again and again. The site is never asked by more than the rate at which it may grow.
	admitted := 0
	for admitted < 10 && time.Since(began) < time.Minute {
		for i, v := range waiting {
			if v == nil {
				continue
			}
			if code, waits := v.ask(); !waits && code == http.StatusOK {
				admitted++
				waiting[i] = nil
			}
		}
		most := 2 // one permit to begin with, and one that has come since the request was sent
		for s, rate := time.Duration(0), 1; s < time.Since(began); s += 5 * time.Second {
			most += rate * 5
			rate *= 2
		}
		if admitted > most {
			t.Fatalf("%d were let in within %v of the return of the site, want at most %d", admitted, time.Since(began), most)
		}
		time.Sleep(200 * time.Millisecond)
	}
	if admitted < 10 {
		t.Errorf("a site that is back got %d visitors in a minute", admitted)
	}
}
