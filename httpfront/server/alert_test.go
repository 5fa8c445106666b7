package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// prometheus is the address of one that scrapes a node as docs/metrics.md has it, and goes by our rules.
type prometheus string

// startPrometheus starts Debian's, or leaves the test out.
func startPrometheus(t *testing.T, scrapes string) prometheus {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("Debian's package prometheus is not there: ", err)
	}
	interval := regexp.MustCompile(`scrape_interval: \w+`).Find(must(os.ReadFile("../../docs/metrics.md")))
	if interval == nil {
		t.Fatal("docs/metrics.md does not say how often to scrape")
	}
	rules, dir := must(filepath.Abs("../../deploy/alerts/ropeline.rules.yaml")), t.TempDir()
	cfg := fmt.Sprintf("rule_files: [%q]\nscrape_configs:\n  - job_name: ropeline\n    %s\n    static_configs: [{targets: [%q]}]\n", rules, interval, scrapes)
	noError(t, os.WriteFile(filepath.Join(dir, "prometheus.yaml"), []byte(cfg), 0o600))
	free := listen()
	at := free.Addr().String()
	free.Close()
	cmd := exec.Command(path, "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+at, "--log.level=warn")
	cmd.Stderr = t.Output()
	noError(t, cmd.Start())
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
				req := must(http.NewRequest(http.MethodGet, "http://"+at+"/", nil))
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

// TestAlertsAboutAnOrigin has Prometheus scrape a node whose site is slow, hangs, fails half of the time, is down, and is well
// in between. How long each alert took from the beginning of the trouble, by the one clock of the machine, is in the output: 15
// s are promised of a machine that has a core for it.
func TestAlertsAboutAnOrigin(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two minutes")
	}
	t.Parallel()
	site := &failingSite{}
	node, _ := start(t, example(t, site, 1000))
	awaitReady(t, node)
	p := startPrometheus(t, node.Addresses().Admin)
	inside := &visitor{t: t, at: node.Addresses().Visitors}
	if code, waits := inside.ask(); code != http.StatusOK || waits {
		t.Fatalf("a visitor gets %d, waits %v", code, waits)
	}
	crowd(t, inside.at, inside.cookie, 50*time.Millisecond)
	await(t, "figures", func() bool { return len(p.ask("query?query=ropeline_origin_recent_requests%3E=50").Data.Result) > 0 })
	const slow, errors, down = "RopelineOriginSlow", "RopelineOriginErrors", "RopelineSiteDown"
	quiet := func() bool {
		return !slices.ContainsFunc([]string{slow, errors, down}, func(alert string) bool { return !p.firing(alert).IsZero() })
	}
	if !quiet() {
		t.Fatal("an alert fires at a site that is well")
	}
	for _, trouble := range []struct {
		what, alert string
		begin       func()
	}{
		{"slow", slow, func() { site.delay.Store(int64(8 * time.Second)) }},
		{"so slow that nothing ends", slow, func() { site.delay.Store(int64(50 * time.Second)) }},
		{"failing half of the time", errors, func() { site.fails.Store(2) }},
		{"down", down, func() { site.down.Store(true) }},
	} {
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
