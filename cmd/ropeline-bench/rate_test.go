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
		for _, want := range []string{"answered", "200:", "latency, 99 in 100", "share of a CPU"} {
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

// TestTheGeneratorMeasuresItself has the measurement start its server, as a process.
func TestTheGeneratorMeasuresItself(t *testing.T) {
	inTestAll(t)
	t.Setenv(asCommand, "1") // for the process that it starts
	var out strings.Builder
	root := newRootCommand()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs([]string{"run", "generator", "--quick", "--set", "body=100"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| closed ", "| open "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want figures of both models:\n%s", out.String())
		}
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
