package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestAccessLog has visitors come to a node that logs them, and rotates the file.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "access.log")
	p := startNode(t, "one", "a", "--origin", startOrigin(t), "--data-dir", t.TempDir(), "--total-active-users", "1", "--access-log", path)
	p.await("is ready", 20*time.Second, ready)
	has := func(path, text string) func() bool {
		return func() bool {
			b, _ := os.ReadFile(path)
			return strings.Contains(string(b), text)
		}
	}
	get(t, p.http, nil)
	await(t, "who came in is in the file", has(path, `"GET / HTTP/1.1" 200 95 "-" "Go-http-client/1.1" "default" "admitted" 0.000`))
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	p.Signal(syscall.SIGHUP)
	await(t, "there is a new file", func() bool { _, err := os.Stat(path); return err == nil })
	get(t, p.http, nil)
	await(t, "who waits is in the new one", has(path, `"default" "queued" 0.000`))
	if has(path+".1", "queued")() || has(path, "admitted")() {
		t.Error("lines are in the wrong file")
	}
	if _, got := p.metrics(); got["ropeline_access_log_lines_total"] != 2 || got["ropeline_access_log_errors_total"] != 0 {
		t.Errorf("%v lines and %v errors were counted, want 2 and none", got["ropeline_access_log_lines_total"], got["ropeline_access_log_errors_total"])
	}
	get(t, p.http, nil)
	if code := p.stop(); code != 0 {
		t.Errorf("ended with %d", code)
	}
	if b, _ := os.ReadFile(path); strings.Count(string(b), "\n") != 2 {
		t.Errorf("not every request is in the file when the node has ended:\n%s", b)
	}
}

// TestHangupEndsNoNode, be there an access log or not: who rotates files means no harm.
func TestHangupEndsNoNode(t *testing.T) {
	t.Parallel()
	p := startNode(t, "one", "a", "--origin", startOrigin(t), "--data-dir", t.TempDir())
	p.await("is ready", 20*time.Second, ready)
	p.Signal(syscall.SIGHUP)
	await(t, "it says that nothing comes of it", func() bool { return strings.Contains(p.Log(), "there is no access log to open again") })
	get(t, p.http, nil)
	if code := p.stop(); code != 0 {
		t.Errorf("ended with %d", code)
	}
}

// TestAccessLogOnStdout: a node without a file to write to.
func TestAccessLogOnStdout(t *testing.T) {
	t.Parallel()
	p := startNode(t, "one", "a", "--origin", startOrigin(t), "--data-dir", t.TempDir(), "--access-log", "-")
	p.await("is ready", 20*time.Second, ready)
	get(t, p.http, nil)
	p.Signal(syscall.SIGHUP)
	get(t, p.http, nil)
	await(t, "both requests are there", func() bool { return strings.Count(p.Log(), `"default" "admitted" 0.000`) == 2 })
	if code := p.stop(); code != 0 {
		t.Errorf("ended with %d", code)
	}
}

// TestSpansInLogsHaveAUnit, as JSON as well, which has numbers without one.
func TestSpansInLogsHaveAUnit(t *testing.T) {
	for format, want := range map[string]string{"text": "after=1.5s", "json": `"after":"1.5s"`} {
		var b strings.Builder
		log, err := newLogger(&b, format, "info")
		if err != nil {
			t.Fatal(err)
		}
		log.Info("ready", "after", 1500*time.Millisecond)
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: %q, want %q", format, b.String(), want)
		}
	}
}

// TestNothingIsLoggedOfRequests: as a node is started by default, what it logs does not grow
// with what visitors do.
func TestNothingIsLoggedOfRequests(t *testing.T) {
	t.Parallel()
	p := serveNode(t, "one", "a", "--origin", brokenAt(t), "--data-dir", t.TempDir(), "--total-active-users", "2", "--log-format", "json")
	// A node is ready before it has said so.
	await(t, "it says that it is ready", func() bool { return strings.HasSuffix(p.Log(), "}\n") && strings.Contains(p.Log(), `"msg":"ready"`) })
	before := p.Log()
	if !strings.HasPrefix(before, `{"time":`) || strings.Contains(before, "\nlevel=") {
		t.Errorf("what is logged is not JSON:\n%s", before)
	}
	inside := newVisitor(t)
	for range 30 {
		inside.ask("GET", "http://"+p.http+"/")
		newVisitor(t).ask("GET", "http://"+p.http+"/") // two at most come in
		inside.ask("POST", "http://"+p.http+"/")
	}
	await(t, "all requests have ended", func() bool {
		_, got := p.metrics()
		return got[`ropeline_requests_total{outcome="admitted",room="default",zone="default"}`]+
			got[`ropeline_requests_total{outcome="queued",room="default",zone="default"}`] == 90
	})
	if more := strings.TrimPrefix(p.Log(), before); more != "" {
		t.Errorf("requests are logged:\n%s", more)
	}
	inside.ask("GET", "http://"+p.http+"/broken?mine=1")
	await(t, "what failed is told", func() bool { return strings.HasSuffix(strings.TrimPrefix(p.Log(), before), "}\n") })
	if more := strings.TrimPrefix(p.Log(), before); !strings.Contains(more, `"msg":"request failed"`) || !strings.Contains(more, `"path":"/broken"`) || strings.Contains(more, "mine") {
		t.Errorf("a request that failed is told as %q", more)
	}
}

// TestAccessLogIsRefused where nothing would come of it.
func TestAccessLogIsRefused(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--verdict-listen 127.0.0.1:0 --trusted-proxies 127.0.0.1 --access-log -": "--access-log needs --origin",
		"--origin http://127.0.0.1:1 --access-log /nowhere/access.log":            "/nowhere/access.log",
	} {
		p := startNode(t, "one", "a", append(strings.Fields(args), "--data-dir", t.TempDir())...)
		<-p.Ended()
		if code := p.Code(); code == 0 || !strings.Contains(p.Log(), want) {
			t.Errorf("%s: ended with %d, log:\n%s", args, code, p.Log())
		}
	}
}

// TestTracesOfANode are sent to the collector that a flag or the environment names, and to
// none otherwise.
func TestTracesOfANode(t *testing.T) {
	var sent atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); r.URL.Path == "/v1/traces" && len(b) > 100 {
			sent.Add(1)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(srv.Close)
	for _, c := range []struct {
		env  string
		args []string
		want bool
	}{
		{args: []string{"--otlp-endpoint", srv.URL, "--otlp-sample", "1"}, want: true},
		{env: srv.URL, args: []string{"--otlp-sample", "1"}, want: true},
		{env: srv.URL, args: []string{"--otlp-sample", "0"}},
		{args: []string{"--otlp-sample", "1"}},
	} {
		sent.Store(0)
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.env)
		p := serveNode(t, "one", "a", append(c.args, "--origin", startOrigin(t), "--data-dir", t.TempDir())...)
		get(t, p.http, nil)
		if code := p.stop(); code != 0 || (sent.Load() > 0) != c.want {
			t.Errorf("%+v: ended with %d, and %d batches of spans were sent", c, code, sent.Load())
		}
	}
}
