package peers

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingSaysWhoBringsIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	own := filepath.Join(t.TempDir(), "own")
	if err := os.WriteFile(own, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	got := Missing("no-such-program", own, "artifacts/caddy", "/no/such/ngx_http_lua_module.so")
	want := []string{"no-such-program", "caddy (make artifacts/caddy)", "ngx_http_lua_module.so"}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(Missing(own)) != 0 {
		t.Error("a program that is there is missing")
	}
}

func needTaskset(t *testing.T) {
	t.Helper()
	if missing := Missing("taskset", "sleep", "sh"); len(missing) > 0 {
		t.Skip(missing)
	}
}

func TestProcessEndsWithItsContext(t *testing.T) {
	needTaskset(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := Start(ctx, Command{Core: OfServer, Name: "sleep", Args: []string{"60"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Usage(); err != nil {
		t.Error(err)
	}
	cancel()
	<-p.Ended()
	if err := p.Stop(); err != nil {
		t.Errorf("it has ended, and to stop it gives %v", err)
	}
}

func TestAwaitTellsWhatTheProgramSaid(t *testing.T) {
	needTaskset(t)
	p, err := Start(t.Context(), Command{Core: OfServer, Name: "sh", Args: []string{"-c", "echo no such setting >&2; exit 1"}})
	if err != nil {
		t.Fatal(err)
	}
	err = p.AwaitFunc(t.Context(), "comes", func(context.Context) bool { return false })
	if err == nil || !strings.Contains(err.Error(), "no such setting") || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("got %v", err)
	}
}

func TestParseWrk(t *testing.T) {
	got, err := parseWrk(`Running 1s test @ http://127.0.0.1:1/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.04ms    1.25ms  22.76ms   95.20%
  70093 requests in 1.10s, 12.30MB read
  Non-2xx or 3xx responses: 12
Requests/sec:  63721.20
Transfer/sec:     11.18MB
`)
	if want := (Answers{70093, 12, 63721.20}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := parseWrk("unable to connect\n"); err == nil {
		t.Error("no answers are no error")
	}
}
