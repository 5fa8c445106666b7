package server

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// prometheus is one that scrapes a node as docs/metrics.md has it, and goes by our rules.
type prometheus struct {
	t  *testing.T
	at string
}

// startPrometheus starts Debian's, or leaves the test out.
func startPrometheus(t *testing.T, scrapes string) *prometheus {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("Debian's package prometheus is not there: ", err)
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	interval := regexp.MustCompile(`scrape_interval: \w+`).Find(page)
	if interval == nil {
		t.Fatal("docs/metrics.md does not say how often to scrape")
	}
	rules, err := filepath.Abs("../../deploy/alerts/ropeline.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cfg := fmt.Sprintf("rule_files: [%q]\nscrape_configs:\n  - job_name: ropeline\n    %s\n    static_configs: [{targets: [%q]}]\n", rules, interval, scrapes)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yaml"), []byte(cfg), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &prometheus{t: t, at: free.Addr().String()}
	free.Close()
	cmd := exec.Command(path, "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+p.at, "--log.level=warn")
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	return p
}

// firing returns since when an alert fires; the zero time: it does not, or Prometheus does not answer yet.
func (p *prometheus) firing(alert string) (since time.Time) {
	resp, err := http.Get("http://" + p.at + "/api/v1/alerts")
	if err != nil {
		return since
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Alerts []struct {
				Labels   map[string]string
				State    string
				ActiveAt time.Time
			}
		}
	}
	if json.NewDecoder(resp.Body).Decode(&answer) != nil {
		return since
	}
	for _, a := range answer.Data.Alerts {
		if a.Labels["alertname"] == alert && a.State == "firing" {
			return a.ActiveAt
		}
	}
	return since
}

// knows reports whether a query has a result.
func (p *prometheus) knows(query string) bool {
	resp, err := http.Get("http://" + p.at + "/api/v1/query?query=" + query)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var answer struct{ Data struct{ Result []any } }
	return json.NewDecoder(resp.Body).Decode(&answer) == nil && len(answer.Data.Result) > 0
}

// await polls for long: machines are slow at times.
func (p *prometheus) await(what string, is func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// crowd asks with one cookie, so often, whether or not answers come, until the test ends.
func crowd(t *testing.T, at, cookie string, every time.Duration) {
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	over := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for tick := time.NewTicker(every); ; {
			select {
			case <-over:
				tick.Stop()
				return
			case <-tick.C:
			}
			all.Go(func() {
				req, err := http.NewRequest(http.MethodGet, "http://"+at+"/", nil)
				if err != nil {
					panic(err)
				}
				req.Header.Set("Cookie", cookie)
				if resp, err := transport.RoundTrip(req); err == nil {
					resp.Body.Close()
				}
			})
		}
	})
	t.Cleanup(func() {
		close(over)
		all.Wait()
		transport.CloseIdleConnections()
	})
}

// TestAlertsAboutAnOrigin has Prometheus scrape a node whose site is slow, hangs, fails half of the time, is down, and is well
// in between. How long each alert took from the beginning of the trouble, by the one clock of the machine, is in the output: 15
// s are promised of a machine that has a core for it.
func TestAlertsAboutAnOrigin(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two minutes")
	}
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
	node, _ := start(t, cfg)
	awaitReady(t, node)
	p := startPrometheus(t, node.Addresses().Admin)
	inside := &visitor{t: t, at: node.Addresses().Visitors}
	if code, waits := inside.ask(); code != http.StatusOK || waits {
		t.Fatalf("a visitor gets %d, waits %v", code, waits)
	}
	crowd(t, inside.at, inside.cookie, 50*time.Millisecond)
	p.await("there are figures", func() bool { return p.knows("ropeline_origin_recent_requests%3E=50") })
	alerts := []string{"RopelineOriginSlow", "RopelineOriginErrors", "RopelineSiteDown"}
	for _, alert := range alerts {
		if since := p.firing(alert); !since.IsZero() {
			t.Fatalf("%s fires at a site that is well", alert)
		}
	}
	for _, trouble := range []struct {
		what, alert string
		begin, end  func()
	}{
		{"slow", alerts[0], func() { site.delay.Store(int64(8 * time.Second)) }, func() { site.delay.Store(0) }},
		{"so slow that nothing ends", alerts[0], func() { site.delay.Store(int64(50 * time.Second)) }, func() { site.delay.Store(0) }},
		{"failing half of the time", alerts[1], func() { site.fails.Store(2) }, func() { site.fails.Store(0) }},
		{"down", alerts[2], func() { site.down.Store(true) }, func() { site.down.Store(false) }},
	} {
		began := time.Now()
		trouble.begin()
		var since time.Time
		p.await(trouble.alert+" fires, as the site is "+trouble.what, func() bool {
			since = p.firing(trouble.alert)
			return !since.IsZero()
		})
		if since.Before(began) {
			t.Errorf("%s fires since %v before the site was %s", trouble.alert, began.Sub(since), trouble.what)
		}
		over := time.Now()
		trouble.end()
		p.await("nothing fires, as the site is not "+trouble.what+" any more", func() bool {
			for _, alert := range alerts {
				if !p.firing(alert).IsZero() {
					return false
				}
			}
			return true
		})
		t.Logf("a site that is %s: %s after %.1f s, gone %.1f s after its end", trouble.what, trouble.alert, since.Sub(began).Seconds(), time.Since(over).Seconds())
	}
}
