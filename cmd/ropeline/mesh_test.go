package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/load"
	"github.com/ropeline/ropeline/node"
)

// TestReplayWithANodeKilled sends the visitors of a real access log through
// three processes in two sites, with room for about half of them, and kills one
// of the nodes in the middle.
func TestReplayWithANodeKilled(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	log, session, limit := readLog(t).First(500), 6*time.Second, 120
	nodes := startMesh(t, startOrigin(t), []string{"a", "a", "b"},
		"--total-active-users", strconv.Itoa(limit), "--new-users-per-minute", "100000",
		"--session-duration", session.String(), "--refresh-interval", "1s", "--bucket-span", "2s")
	cfg := load.Config{Log: log, Speed: log.Span.Seconds() / 25, SessionDuration: session, Seed: 1}
	for _, p := range nodes {
		cfg.Targets = append(cfg.Targets, "http://"+p.http+"/")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	killed := false
	report, err := load.Run(ctx, cfg, func(s load.Snapshot) {
		if !killed && s.Expected > 0 && s.Visitors > s.Expected/2 {
			killed = true
			go nodes[1].Kill()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("report: %+v", report)
	if !killed {
		t.Error("no node was killed: the run was over too soon")
	}
	if report.Waiting != 0 || report.GaveUp != 0 || report.Admitted != report.Visitors {
		t.Errorf("%d of %d visitors were let in, %d still wait, %d gave up; want everybody in", report.Admitted, report.Visitors, report.Waiting, report.GaveUp)
	}
	if report.Waited < report.Visitors/4 {
		t.Errorf("only %d of %d visitors waited: the limit was not felt", report.Waited, report.Visitors)
	}
	if report.OrderError >= 0.05 {
		t.Errorf("order error = %.4f, want below 0.05", report.OrderError)
	}
	if report.PlacesLost != 0 || report.SessionsLost != 0 {
		t.Errorf("%d places and %d sessions were lost", report.PlacesLost, report.SessionsLost)
	}
	if report.PeakActive > limit {
		t.Errorf("peak of active visitors = %d, the limit is %d", report.PeakActive, limit)
	}
}

const realLog = "../../bench/testdata/semicomplete-2015-05.access.log.gz"

func readLog(t *testing.T) *load.Log {
	t.Helper()
	f, err := os.Open(realLog)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log, err := load.ReadLog(f)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// TestCrashIsSeenAndHealed kills a node, waits until the others see it, and
// starts it again on another port under the same name.
func TestCrashIsSeenAndHealed(t *testing.T) {
	t.Parallel()
	nodes := meshOf(t, startOrigin(t), []string{"a", "a", "b"}, but(1))
	crashed, others := nodes[1], []*running{nodes[0], nodes[2]}
	visit := getIn(t, crashed.http) // on a busy machine its first right may come after the first request
	for _, p := range others {
		p.await("counts the visitor", 5*time.Second, func(s node.Status) bool { return s.Rooms[0].Active == 1 })
	}
	crashed.kill()
	// How fast this goes is measured by transport, in virtual time; a busy machine
	// is given longer.
	start := time.Now()
	for _, p := range others {
		p.await("sees the crash", 30*time.Second, sees(1, "failed"))
	}
	t.Logf("the crash was seen after %v", time.Since(start))
	if again := get(t, others[0].http, visit.Cookies()); again.Header.Get("Ropeline-State") != "" {
		t.Error("the session was lost with its node")
	}
	crashed.moveMesh(freeAddress(t))
	crashed.start()
	start = time.Now()
	for _, p := range others {
		p.await("sees the node again", 30*time.Second, sees(2, "alive"))
	}
	t.Logf("the node was back after %v", time.Since(start))
	// The first answer comes only once the site's state is there.
	first := getReady(t, crashed.http, visit.Cookies())
	if first.Header.Get("Ropeline-State") != "" {
		t.Error("the session is not known to the node that came back")
	}
	s, err := crashed.status()
	if err != nil {
		t.Fatal(err)
	}
	if !s.Ready || s.Rooms[0].Active < 1 || s.Boot != 2 {
		t.Errorf("status after the first answer = %+v, want ready, boot 2, and the site's visitor counted", s)
	}
}

func TestStateDirectoryCannotServeTwo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	origin := startOrigin(t)
	first := startNode(t, "one", "a", "--origin", origin, "--data-dir", dir)
	first.await("is ready", 20*time.Second, ready)
	second := startNode(t, "two", "a", "--origin", origin, "--data-dir", dir)
	select {
	case <-second.Ended():
	case <-time.After(20 * time.Second):
		t.Fatal("the second node did not stop")
	}
	if code := second.Code(); code != exitFailed {
		t.Errorf("exit code = %d, want %d", code, exitFailed)
	}
	if code := first.stop(); code != 0 {
		t.Errorf("exit code of the first after SIGTERM = %d, want 0", code)
	}
}

func TestOriginDownKeepsTheSession(t *testing.T) {
	t.Parallel()
	p := serveNode(t, "one", "a", "--origin", "http://"+freeAddress(t), "--data-dir", t.TempDir(), "--total-active-users", "1")
	resp := get(t, p.http, nil)
	if resp.StatusCode != 502 || len(resp.Cookies()) != 1 {
		t.Fatalf("answer = %d with %d cookies, want 502 with the session's", resp.StatusCode, len(resp.Cookies()))
	}
	if again := get(t, p.http, resp.Cookies()); again.StatusCode != 502 || again.Header.Get("Ropeline-State") != "failed" {
		t.Errorf("second answer = %d, state %q; want 502 from the same session", again.StatusCode, again.Header.Get("Ropeline-State"))
	}
	if other := get(t, p.http, nil); other.Header.Get("Ropeline-State") != "waiting" {
		t.Errorf("state of another visitor = %q, want waiting: the place is taken", other.Header.Get("Ropeline-State"))
	}
}

func TestMistakesStopTheStart(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret.key")
	keygen(t, secret)
	tests := map[string]struct {
		args []string
		code int
		want string
	}{
		"unknown flag":               {[]string{"--orgin", "http://a"}, exitUsage, "unknown flag: --orgin"},
		"bad value":                  {[]string{"--origin", "http://a", "--total-active-users", "0"}, exitUsage, "1 to 2147483647"},
		"no origin":                  {nil, exitUsage, "--origin is missing"},
		"no such file":               {[]string{"--config", "/nonexistent/ropeline.yaml"}, exitUsage, "no such file"},
		"public admin":               {[]string{"--origin", "http://a", "--admin", "0.0.0.0:0"}, exitUsage, "loopback"},
		"bad secret":                 {[]string{"--origin", "http://a", "--mesh", "127.0.0.1:0", "--secret-file", os.DevNull}, exitFailed, "secret in"},
		"no address of this machine": {[]string{"--origin", "http://a", "--mesh", "192.0.2.1:7946", "--secret-file", secret}, exitFailed, "choose another address with --mesh"},
		"taken address":              {nil, exitFailed, "address already in use; end the program that has it, or choose another address with --listen"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := startNode(t, "one", "a", append(tt.args, "--data-dir", t.TempDir())...)
			if name == "taken address" {
				p.kill()
				busy := startNode(t, "busy", "a", "--origin", startOrigin(t), "--data-dir", t.TempDir())
				busy.await("is ready", 20*time.Second, ready)
				p.http, p.args = busy.http, []string{"--origin", "http://127.0.0.1:1", "--data-dir", t.TempDir()}
				p.start()
			}
			select {
			case <-p.Ended():
			case <-time.After(20 * time.Second):
				t.Fatalf("the node did not stop; log:\n%s", p.Log())
			}
			if code := p.Code(); code != tt.code {
				t.Errorf("exit code = %d, want %d", code, tt.code)
			}
			if !strings.Contains(p.Log(), tt.want) {
				t.Errorf("it said\n%s\nwant %q in it", p.Log(), tt.want)
			}
		})
	}
}
