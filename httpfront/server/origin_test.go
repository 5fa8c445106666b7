package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// failingSite is a site that does as a test says.
type failingSite struct {
	delay  atomic.Int64 // of each answer
	fails  atomic.Int64 // of so many requests the last is answered with 500; 0: none is
	down   atomic.Bool  // connections are cut
	asked  atomic.Int64 // requests of visitors
	probes atomic.Int64
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
	req, err := http.NewRequest(http.MethodGet, "http://"+v.at+"/", nil)
	if err != nil {
		v.t.Fatal(err)
	}
	if v.cookie != "" {
		req.Header.Set("Cookie", v.cookie)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		v.t.Fatal(err)
	}
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
	srv := httptest.NewServer(site)
	t.Cleanup(srv.Close)
	o, err := upstream.ParseOrigin(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	cfg := example(t, "", 1000)
	cfg.Proxy = Proxy{Origins: httpfront.Origins{Servers: []upstream.Origin{o}}}
	cfg.Rooms[0].RefreshInterval = time.Second
	node, _ := start(t, cfg)
	awaitReady(t, node)
	at, admin := node.Addresses().Visitors, node.Addresses().Admin
	inside := &visitor{t: t, at: at}
	many := func(n int) {
		for range n {
			inside.ask()
		}
	}
	seen := func(what string, is func(o *dashboard.Origin) bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			text, _ := visit(t, admin+"/api/v1/mesh")
			var mesh dashboard.Snapshot
			if err := json.Unmarshal([]byte(text), &mesh); err != nil {
				t.Fatalf("%v: %.200s", err, text)
			}
			if len(mesh.Nodes) == 0 {
				t.Fatalf("no node: %.500s", text)
			}
			origins := mesh.Nodes[0].Origins
			if len(origins) == 1 && is(&origins[0]) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: the dashboard shows %+v", what, origins)
			}
		}
	}
	metric := func(name, value string) {
		t.Helper()
		text, _ := visit(t, admin+"/metrics")
		if want := name + `{origin="` + srv.URL + `",room=""} ` + value; !strings.Contains(text, want) {
			t.Errorf("the metrics do not say %s", want)
		}
	}
	many(10)
	seen("well", func(o *dashboard.Origin) bool { return o.State == "in" && o.ErrorRate == 0 && o.LastFailure == nil })
	metric("ropeline_origin_up", "1")

	site.delay.Store(int64(50 * time.Millisecond))
	many(20)
	seen("slow", func(o *dashboard.Origin) bool { return o.P50 >= 50*time.Millisecond && o.P99 >= o.P50 })
	site.delay.Store(0)

	site.fails.Store(2)
	many(60)
	seen("failing", func(o *dashboard.Origin) bool {
		return o.State == "in" && o.ErrorRate > 0.25 && o.LastFailure != nil && o.LastFailure.Text == "status 500"
	})
	site.fails.Store(0)

	site.down.Store(true)
	many(8)
	seen("down", func(o *dashboard.Origin) bool {
		return o.SiteDown && o.State != "in" && o.LastFailure != nil && o.LastFailure.Text != "status 500"
	})
	metric("ropeline_origin_up", "0")
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
	site.down.Store(false)
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
