package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
)

// failingSite is a site that does as a test says.
type failingSite struct {
	delay  atomic.Int64 // of each answer
	fails  atomic.Int64 // of so many requests the last is answered with 500; 0: none is
	down   atomic.Bool  // connections are cut
	ill    atomic.Bool  // everything is answered with 503
	asked  atomic.Int64 // requests of visitors
	probes atomic.Int64
}

// heal ends all trouble.
func (s *failingSite) heal() {
	s.delay.Store(0)
	s.fails.Store(0)
	s.down.Store(false)
	s.ill.Store(false)
}

func (s *failingSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isProbe := r.Method == http.MethodHead
	if isProbe {
		s.probes.Add(1)
	}
	if s.down.Load() {
		panic(http.ErrAbortHandler)
	}
	if s.ill.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
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
	req := must.Do(http.NewRequest(http.MethodGet, "http://"+v.at+"/", nil))
	if v.cookie != "" {
		req.Header.Set("Cookie", v.cookie)
	}
	resp := must.Do(http.DefaultTransport.RoundTrip(req))
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
		holds bool
		is    func(o *dashboard.Origin) bool
	}{
		{"well", func() {}, 10, false, func(o *dashboard.Origin) bool { return o.State == "in" && o.ErrorRate == 0 && o.LastFailure == nil }},
		{"slow", func() { site.delay.Store(int64(50 * time.Millisecond)) }, 20, false, func(o *dashboard.Origin) bool {
			return o.P50 >= 50*time.Millisecond && o.P99 >= o.P50
		}},
		{"failing", func() { site.fails.Store(2) }, 60, false, func(o *dashboard.Origin) bool {
			return o.State == "in" && o.ErrorRate > 0.25 && o.LastFailure != nil && o.LastFailure.Text == "status 500"
		}},
		{"answering 503 to all", func() { site.ill.Store(true) }, 1, true, func(o *dashboard.Origin) bool {
			return o.SiteDown && o.State != "in" && o.LastFailure.Text == "probe: HEAD /: status 503"
		}},
		{"down", func() {
			inside.ask() // and what it is answered brings it in
			up("1")
			site.down.Store(true)
		}, 8, true, func(o *dashboard.Origin) bool {
			return o.SiteDown && o.State != "in" && !strings.Contains(o.LastFailure.Text, "status")
		}},
	} {
		site.heal()
		c.begin()
		for range c.asks {
			inside.ask()
		}
		seen(c.what, c.is)
		if _, waits := (&visitor{t: t, at: at}).ask(); waits != c.holds {
			t.Errorf("somebody new waits at a site that is %s: %v", c.what, waits)
		}
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
	admitted, all := 0, len(waiting)
	for admitted < 10 && time.Since(began) < time.Minute {
		waiting = slices.DeleteFunc(waiting, func(v *visitor) bool {
			code, waits := v.ask()
			return !waits && code == http.StatusOK
		})
		admitted = all - len(waiting)
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

// prometheus is the address of one that scrapes a node as docs/metrics.md has it, and goes by our rules.
type prometheus string

// startPrometheus starts Debian's, or leaves the test out.
func startPrometheus(t *testing.T, scrapes string) prometheus {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("Debian's package prometheus is not there: ", err)
	}
	interval := regexp.MustCompile(`scrape_interval: \w+`).Find(must.Do(os.ReadFile("../../docs/metrics.md")))
	if interval == nil {
		t.Fatal("docs/metrics.md does not say how often to scrape")
	}
	rules, dir := must.Do(filepath.Abs("../../deploy/alerts/ropeline.rules.yaml")), t.TempDir()
	cfg := fmt.Sprintf("rule_files: [%q]\nscrape_configs:\n  - job_name: ropeline\n    %s\n    static_configs: [{targets: [%q]}]\n", rules, interval, scrapes)
	must.OK(os.WriteFile(filepath.Join(dir, "prometheus.yaml"), []byte(cfg), 0o600))
	free := listen()
	at := free.Addr().String()
	free.Close()
	cmd := exec.Command(path, "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+at, "--log.level=warn")
	cmd.Stderr = t.Output()
	must.OK(cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	return prometheus(at)
}

// answer is what is asked for of Prometheus.
type answer struct {
	Data struct {
		Result []any
		Alerts []struct {
			Labels   map[string]string
			State    string
			ActiveAt time.Time
		}
	}
}

// ask returns nothing if Prometheus does not answer yet.
func (p prometheus) ask(path string) (a answer) {
	resp, err := http.Get("http://" + string(p) + "/api/v1/" + path)
	if err != nil {
		return a
	}
	defer resp.Body.Close()
	if json.NewDecoder(resp.Body).Decode(&a) != nil {
		return answer{}
	}
	return a
}

// firing returns since when an alert fires; the zero time: it does not.
func (p prometheus) firing(alert string) (since time.Time) {
	for _, a := range p.ask("alerts").Data.Alerts {
		if a.Labels["alertname"] == alert && a.State == "firing" {
			return a.ActiveAt
		}
	}
	return since
}

// crowd asks with one cookie, so often, whether or not answers come, until the test ends.
func crowd(t *testing.T, at, cookie string, every time.Duration) {
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	var all sync.WaitGroup
	all.Go(func() {
		for tick := time.Tick(every); ; {
			select {
			case <-t.Context().Done():
				return
			case <-tick:
			}
			all.Go(func() {
				req := must.Do(http.NewRequest(http.MethodGet, "http://"+at+"/", nil))
				req.Header.Set("Cookie", cookie)
				if resp, err := transport.RoundTrip(req); err == nil {
					resp.Body.Close()
				}
			})
		}
	})
	t.Cleanup(func() {
		all.Wait()
		transport.CloseIdleConnections()
	})
}

const alertSlow, alertErrors, alertDown = "RopelineOriginSlow", "RopelineOriginErrors", "RopelineSiteDown"

// TestAlertsAboutAnOrigin has Prometheus scrape a node whose site is slow, hangs, fails half of the time, is down, and is well
// in between. How long each alert took from the beginning of the trouble, by the one clock of the machine, is in the output: 15
// s are promised of a machine that has a core for it.
func TestAlertsAboutAnOrigin(t *testing.T) {
	site := &failingSite{}
	testAlerts(t, site, 50*time.Millisecond, []originTrouble{
		{"slow", alertSlow, func() { site.delay.Store(int64(8 * time.Second)) }},
		{"so slow that nothing ends", alertSlow, func() { site.delay.Store(int64(50 * time.Second)) }},
		{"failing half of the time", alertErrors, func() { site.fails.Store(2) }},
		{"down", alertDown, func() { site.down.Store(true) }},
	})
}

// TestAlertsOfAFewRequests is the same of a site that is asked once in three seconds.
func TestAlertsOfAFewRequests(t *testing.T) {
	site := &failingSite{}
	testAlerts(t, site, 3*time.Second, []originTrouble{
		{"failing all but probes", alertErrors, func() { site.fails.Store(1) }},
		{"answering 503 to all", alertDown, func() { site.ill.Store(true) }},
	})
}

type originTrouble struct {
	what, alert string
	begin       func()
}

func testAlerts(t *testing.T, site *failingSite, every time.Duration, troubles []originTrouble) {
	if testing.Short() {
		t.Skip("takes two minutes")
	}
	t.Parallel()
	node, _ := start(t, example(t, site, 1000))
	awaitReady(t, node)
	p := startPrometheus(t, node.Addresses().Admin)
	inside := &visitor{t: t, at: node.Addresses().Visitors}
	if code, waits := inside.ask(); code != http.StatusOK || waits {
		t.Fatalf("a visitor gets %d, waits %v", code, waits)
	}
	crowd(t, inside.at, inside.cookie, every)
	await(t, "figures", func() bool { return len(p.ask("query?query=ropeline_origin_recent_requests%3E=5").Data.Result) > 0 })
	quiet := func() bool {
		return !slices.ContainsFunc([]string{alertSlow, alertErrors, alertDown}, func(alert string) bool { return !p.firing(alert).IsZero() })
	}
	if !quiet() {
		t.Fatal("an alert fires at a site that is well")
	}
	for _, trouble := range troubles {
		began := time.Now()
		trouble.begin()
		var since time.Time
		await(t, trouble.alert+", as the site is "+trouble.what, func() bool {
			since = p.firing(trouble.alert)
			return !since.IsZero()
		})
		if since.Before(began) {
			t.Errorf("%s fires since %v before the site was %s", trouble.alert, began.Sub(since), trouble.what)
		}
		over := time.Now()
		site.heal()
		await(t, "the end of all alerts, as the site is not "+trouble.what+" any more", quiet)
		t.Logf("a site that is %s: %s after %.1f s, gone %.1f s after its end", trouble.what, trouble.alert, since.Sub(began).Seconds(), time.Since(over).Seconds())
	}
}
