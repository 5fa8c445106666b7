package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/ropeline/ropeline/bench/load"
	"github.com/ropeline/ropeline/cmd/cli"
)

// oncePatient lets everybody in at the second request, and counts requests.
type oncePatient struct{ requests, html atomic.Int64 }

func (p *oncePatient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests.Add(1)
	if r.Header.Get("Accept") != "application/json" {
		p.html.Add(1)
	}
	if _, err := r.Cookie("seen"); err == nil {
		return
	}
	http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1"})
	w.Header().Set("Ropeline-State", "waiting")
	w.Header().Set("Refresh", "0.1")
}

// runLoadCommand runs the command with args and returns what it printed.
func runLoadCommand(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	cmd := newLoadCommand()
	var stdout, stderr bytes.Buffer
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestLoadJSON(t *testing.T) {
	room := new(oncePatient)
	server := httptest.NewServer(room)
	defer server.Close()
	out, errOut, err := runLoadCommand(t, "--target", server.URL, "--burst", "20", "--stay", "0s", "--json", "--seed", "9")
	if err != nil {
		t.Fatal(err)
	}
	if errOut != "" {
		t.Errorf("got %q on standard error, which is no terminal", errOut)
	}
	dec := json.NewDecoder(strings.NewReader(out))
	var got map[string]any
	if err := dec.Decode(&got); err != nil || dec.More() {
		t.Fatalf("got %q, %v, want one JSON object", out, err)
	}
	for key, want := range map[string]float64{
		"visitors": 20, "admitted": 20, "waiting": 0, "waited": 20, "errors": 0, "requests": 40, "peak_active": 20, "seed": 9,
	} {
		if got[key] != want {
			t.Errorf("%s: got %v, want %v", key, got[key], want)
		}
	}
	for _, key := range []string{"decisions_per_second", "order_error", "places_lost", "sessions_lost", "elapsed_seconds", "status", "peak_waiting", "gave_up"} {
		if _, ok := got[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
	latency, _ := got["latency_ms"].(map[string]any)
	for _, key := range []string{"p50", "p99", "p999"} {
		if v, ok := latency[key].(float64); !ok || v <= 0 {
			t.Errorf("latency_ms.%s: got %v", key, latency[key])
		}
	}
	if n := room.requests.Load(); n != 40 {
		t.Errorf("the room saw %d requests, want 40", n)
	}
}

func TestLoadTable(t *testing.T) {
	room := new(oncePatient)
	server := httptest.NewServer(room)
	defer server.Close()
	out, _, err := runLoadCommand(t, "--target", server.URL, "--burst", "3", "--stay", "0s", "--accept", "html")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"let in", "100.0 %", "order error", "2xx: 6", "latency"} {
		if !strings.Contains(out, want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("a line has %d columns, which 80 wrap: %s", n, line)
		}
	}
	if room.html.Load() != 6 {
		t.Errorf("%d of 6 requests were for HTML", room.html.Load())
	}
}

func TestLoadReplaysLog(t *testing.T) {
	server := httptest.NewServer(new(oncePatient))
	defer server.Close()
	zipped, err := os.Open(realLog)
	if err != nil {
		t.Fatal(err)
	}
	defer zipped.Close()
	whole, err := gzip.NewReader(zipped)
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 100<<10) // all of it takes seconds to read
	if _, err := io.ReadFull(whole, text); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(log, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := runLoadCommand(t, "--target", server.URL, "--json", "--visitors", "40", "--speed", "1000000", "--log", log)
	if err != nil {
		t.Fatal(err)
	}
	var r load.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Visitors != 40 || r.Admitted != 40 {
		t.Errorf("got %s, %v, want 40 visitors let in", out, err)
	}
}

func TestLoadTellsOfMalformedLines(t *testing.T) {
	server := httptest.NewServer(new(oncePatient))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "access.log")
	text := "1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5\nrubbish\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errOut, err := runLoadCommand(t, "--target", server.URL, "--json", "--log", path)
	if err != nil || !strings.Contains(errOut, "line 2") {
		t.Errorf("got %q, %v, want a word about line 2", errOut, err)
	}
}

func TestLoadErrors(t *testing.T) {
	const nobody = "http://127.0.0.1:1/" // a port that no system gives to anybody
	noLog := filepath.Join(t.TempDir(), "none.log")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("dear diary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		args  []string
		want  string
		usage bool
	}{
		{"no target", nil, "--target is missing", true},
		{"bad target", []string{"--target", "localhost:8080"}, "must look like http://", true},
		{"bad path", []string{"--target", nobody, "--path", "shop"}, "must start with /", true},
		{"bad duration", []string{"--target", nobody, "--for", "10"}, "a duration from", false},
		{"bad accept", []string{"--target", nobody, "--accept", "xml"}, "json, html", false},
		{"speed without log", []string{"--target", nobody, "--speed", "3"}, "--log", true},
		{"rate with log", []string{"--target", nobody, "--log", noLog, "--rate", "3"}, "--rate does not go with --log", true},
		{"no such log", []string{"--target", nobody, "--log", noLog}, "no such file", false},
		{"no log at all", []string{"--target", nobody, "--log", text}, "line 1: ", false},
		{"nobody there", []string{"--target", nobody}, "Is the node running", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, _, err := runLoadCommand(t, tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want an error with %q", err, tc.want)
			}
			// Flag errors become usage errors at the root command.
			if _, usage := errors.AsType[cli.UsageError](err); usage != tc.usage {
				t.Errorf("usage error: got %v, want %v", usage, tc.usage)
			}
			if out != "" {
				t.Errorf("got %q on standard output", out)
			}
		})
	}
}
