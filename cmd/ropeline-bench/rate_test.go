//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/ropeline/ropeline/bench/rate"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/cmd/cli"
)

// runRateCommand runs the command with args and returns what it printed.
func runRateCommand(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	cmd := newRateCommand()
	var stdout bytes.Buffer
	cmd.SetOut(&stdout)
	cmd.SetErr(&stdout)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), err
}

// cookies is a site that remembers which were sent to it.
type cookies struct {
	mu   sync.Mutex // guards the following
	seen map[string]int
}

func (c *cookies) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	c.seen[r.Host+" "+r.URL.Path+" "+r.Header.Get("Cookie")]++
}

// times returns how often a request has come.
func (c *cookies) times(request string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[request]
}

func TestRateJSON(t *testing.T) {
	site := new(cookies)
	server := httptest.NewServer(site)
	defer server.Close()
	requests := filepath.Join(t.TempDir(), "heads")
	if err := os.WriteFile(requests, []byte("GET /a HTTP/1.1\nCookie: n=1\n\nGET /b HTTP/1.1\nHost: b.example\nCookie: n=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := runRateCommand(t, "--target", server.URL, "--requests", requests, "--rate", "200", "--for", "100ms", "--warm", "50ms", "--drain", "20s", "--connections", "2", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v of %s", err, out)
	}
	for key, want := range map[string]any{"model": "open", "rate_wanted": 200.0, "seconds": 0.1, "due": 20.0, "sent": 20.0, "answered": 20.0, "corrected": true} {
		if got[key] != want {
			t.Errorf("%s: got %v, want %v", key, got[key], want)
		}
	}
	host := strings.TrimPrefix(server.URL, "http://")
	if n, m := site.times(host+" /a n=1"), site.times("b.example /b n=2"); n != 15 || m != 15 {
		t.Errorf("the site saw the requests %d and %d times, want both 15 times", n, m)
	}
}

func TestRateTable(t *testing.T) {
	site := new(cookies)
	server := httptest.NewServer(site)
	defer server.Close()
	for _, args := range [][]string{{"--rate", "100"}, {"--header", "Cookie: n=1"}} {
		out, err := runRateCommand(t, append([]string{"--target", server.URL + "/x", "--for", "100ms", "--warm", "0s", "--drain", "20s"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"answered", "200: ", "latency, 99 in 100", "share of a CPU"} {
			if !strings.Contains(out, want) {
				t.Errorf("the table lacks %q:\n%s", want, out)
			}
		}
		narrow(t, out)
	}
	if site.times(strings.TrimPrefix(server.URL, "http://")+" /x n=1") == 0 {
		t.Error("the site saw no cookie")
	}
}

// narrow fails the test if a line is wider than most terminals.
func narrow(t *testing.T, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 && strings.ContainsAny(line, "│╭╰") {
			t.Errorf("a line has %d columns, which 80 wrap: %s", n, line)
		}
	}
}

// TestRateSelfTest has the command start its server, as a process.
func TestRateSelfTest(t *testing.T) {
	inTestAll(t)
	t.Setenv(asCommand, "1") // for the process that it starts
	out, err := runRateCommand(t, "--self-test", "--for", "50ms", "--warm", "0s", "--body", "100", "--json")
	var got rate.Sustained
	if err != nil || json.Unmarshal([]byte(out), &got) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if (got.Sustains == 0) == (got.Why == "") {
		t.Errorf("it holds %v/s, and says why none: %q", got.Sustains, got.Why)
	}
	if got.Closed.Answered == 0 || got.Closed.Bytes < 100*got.Closed.Answered || len(got.Open) == 0 {
		t.Errorf("got %+v, want figures of both models", got)
	}
}

func TestRateSelfTestTable(t *testing.T) {
	open := func(wanted, got, late float64, warning string) rate.Result {
		return rate.Result{Model: rate.Open, RateWanted: wanted, Rate: got, Due: 9, Answered: 9, CPUShare: 0.95, Warning: warning,
			Latency: rate.Latency{P50: 900, P99: 9876543.2}, Late: rate.Lateness{P99: late}}
	}
	s := rate.Sustained{Sustains: 160e3, CPUMicros: 5.25, Closed: rate.Result{Model: rate.Closed, Rate: 190e3, CPUShare: 1},
		Open: []rate.Result{open(95e3, 95e3, 12, ""), open(170e3, 150e3, 0, ""), open(160e3, 160e3, 1234567.8, "it is late"), open(160e3, 160e3, 34, "its CPU is full")}}
	out := selfTestTable(s, rateOptions{cfg: rate.Config{Conns: 64}, body: 6})
	for _, want := range []string{"all it can", "0 of 1", "1 of 2", "1 of 1", "34", "sustains 160000 requests", "5.25 µs", "At that rate a measurement warns: its CPU is full."} {
		if !strings.Contains(out, want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
	if high, low := strings.Index(out, "170000/s"), strings.Index(out, "95000/s"); high < 0 || low < high || strings.Count(out, "160000/s") != 1 {
		t.Errorf("want one row for each rate, the highest first:\n%s", out)
	}
	if strings.Contains(out, "Other programs") {
		t.Errorf("nothing else was at work:\n%s", out)
	}
	s.CPUWaited = 0.25
	if out := selfTestTable(s, rateOptions{}); !strings.Contains(out, "Other programs were at work, and had its CPU 25 % of the time") {
		t.Errorf("it does not say that others were at work:\n%s", out)
	}
	if strings.Contains(out, "1234568") {
		t.Errorf("of two tries it shows the one that failed:\n%s", out)
	}
	narrow(t, out)
	s.Sustains, s.Why = 0, "at 1000/s things were late"
	if out := selfTestTable(s, rateOptions{}); !strings.Contains(out, "held no rate in time here: at 1000/s things were late.") || strings.Contains(out, "sustains") {
		t.Errorf("it does not say plainly that no rate is held:\n%s", out)
	}
}

func TestRateErrors(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := rig.Free()
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + free
	for _, tc := range []struct {
		name, args, want string
		usage            bool
	}{
		{"no target", "", "--target is missing", true},
		{"TLS", "--target https://127.0.0.1/", "TLS is not spoken here", true},
		{"no URL", "--target 127.0.0.1:80", "127.0.0.1:80", true},
		{"bad header", "--target " + nobody + " --header nonsense", "nonsense", true},
		{"a body", "--target " + nobody + " --header Content-Length:1", "only heads", true},
		{"no file", "--target " + nobody + " --requests /none", "no such file", true},
		{"empty file", "--target " + nobody + " --requests " + empty, "no request", true},
		{"headers with a file", "--target " + nobody + " --requests " + empty + " --header A:b", "--header does not go with --requests", true},
		{"body without self-test", "--target " + nobody + " --body 5", "--body goes with --self-test", true},
		{"target of a self-test", "--self-test --target " + nobody, "--target does not go with --self-test", true},
		{"bad arrivals", "--target " + nobody + " --arrivals odd", "even, poisson", false},
		{"nobody there", "--target " + nobody, "connection refused", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := runRateCommand(t, strings.Fields(tc.args)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || out != "" {
				t.Fatalf("got %v and %q, want an error with %q", err, out, tc.want)
			}
			// Flag errors become usage errors at the root command.
			if _, usage := errors.AsType[cli.UsageError](err); usage != tc.usage {
				t.Errorf("usage error: got %v, want %v", usage, tc.usage)
			}
		})
	}
}

// TestRateIsDocumented holds the page of commands to the flags and to the keys of the result.
func TestRateIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, found := strings.Cut(string(text), "\n## Sending requests at a constant rate\n")
	if !found {
		t.Fatal("docs/commands.md has no such section")
	}
	rows := strings.Fields(newRateCommand().Flags().FlagUsages())
	for _, word := range rows {
		if strings.HasPrefix(word, "--") && !strings.Contains(page, "`"+word+"`") {
			t.Errorf("docs/commands.md has no row for %s", word)
		}
	}
	keys, err := json.Marshal(rate.Result{LastError: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var result map[string]any
	if err := json.Unmarshal(keys, &result); err != nil {
		t.Fatal(err)
	}
	for key := range result {
		if !strings.Contains(page, "`"+key+"`") {
			t.Errorf("docs/commands.md does not say what %q is", key)
		}
	}
}
