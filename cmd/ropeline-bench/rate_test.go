//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/ropeline/ropeline/bench/rate"
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

func TestRate(t *testing.T) {
	site := new(cookies)
	server := httptest.NewServer(site)
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, tc := range []struct {
		args []string
		came string
		want map[string]any
	}{
		{
			[]string{"--target", server.URL + "/a", "--rate", "200", "--header", "Cookie: n=1"},
			host + " /a n=1",
			map[string]any{"model": "open", "rate_wanted": 200.0, "seconds": 0.1, "due": 20.0, "sent": 20.0, "answered": 20.0},
		},
		{[]string{"--target", server.URL, "--header", "host: b.example"}, "b.example / ", map[string]any{"model": "closed"}},
	} {
		out, err := runRateCommand(t, append(tc.args, "--for", "100ms", "--warm", "50ms", "--connections", "2")...)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v of %s", err, out)
		}
		for key, want := range tc.want {
			if got[key] != want {
				t.Errorf("%s: got %v, want %v", key, got[key], want)
			}
		}
		if n := site.times(tc.came); n == 0 || tc.want["due"] != nil && n != 30 {
			t.Errorf("the site saw the request %d times", n)
		}
	}
}

func TestRateErrors(t *testing.T) {
	const nobody = "http://127.0.0.1:1" // a port that no system gives to anybody
	for _, tc := range []struct {
		name, args, want string
		usage            bool
	}{
		{"no target", "", "--target", true},
		{"TLS", "--target https://127.0.0.1/", "without TLS", true},
		{"no URL", "--target 127.0.0.1:80", "127.0.0.1:80", true},
		{"no host", "--target http:///a", "http:///a", true},
		{"bad header", "--target " + nobody + " --header nonsense", "nonsense", true},
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
	rows := strings.FieldsSeq(newRateCommand().Flags().FlagUsages())
	for word := range rows {
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
