package httpfront

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/observe/accesslog"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// witness notes what it is told of requests.
type witness struct {
	mu    sync.Mutex // guards the following
	count []counted
	lines []string
}

type counted struct {
	room    crdt.RoomID
	outcome Outcome
	took    time.Duration
}

func (w *witness) Record(of crdt.RoomID, o Outcome, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count = append(w.count, counted{of, o, took})
}

func (w *witness) Write(e *accesslog.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, string(accesslog.AppendLine(nil, e)))
}

func (w *witness) watch(c *Config) { c.Requests, c.AccessLog = w, w }

// forget has the next request be the first.
func (w *witness) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count, w.lines = nil, nil
}

// next waits for the n-th request to have ended, and returns what was told of it.
func (w *witness) next(t *testing.T, n int) (c counted, line string) {
	t.Helper()
	waitFor(t, fmt.Sprintf("request %d to end", n), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.count) >= n && len(w.lines) >= n
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.count) != n || len(w.lines) != n {
		t.Fatalf("%d requests were counted and %d logged, want %d", len(w.count), len(w.lines), n)
	}
	return w.count[n-1], w.lines[n-1]
}

// is fails the test unless that is the outcome of the n-th request, and its line has each of the parts.
func (w *witness) is(t *testing.T, n int, outcome Outcome, parts ...string) counted {
	t.Helper()
	got, line := w.next(t, n)
	equal(t, "the outcome of "+line, got.outcome, outcome)
	has(t, "the line", line, parts...)
	return got
}

// TestRecordOfEveryOutcome sends a request of each kind and looks at what is told of it.
func TestRecordOfEveryOutcome(t *testing.T) {
	enter := func(p node.Pass, known bool, now time.Time) node.Verdict {
		return node.Verdict{Admit: true, Pass: node.Pass{Arrival: now.Add(-time.Minute), AcceptedAt: now.Add(-30 * time.Second), LeaseEnd: now.Add(time.Minute)}}
	}
	panics := func(node.Pass, bool, time.Time) node.Verdict { panic("no room") }
	rejects, tries := newRoom(never), newRoom(never)
	rejects.settings.QueueingMethod, tries.settings.DryRun = room.Reject, true
	rooms := newTableRooms(map[string]Room{"/in": newRoom(enter), "/wait": newRoom(never), "/reject": rejects, "/try": tries, "/panic": newRoom(panics)})
	var w witness
	f := serve(t, rooms, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/in/broken":
			panic(http.ErrAbortHandler)
		case "/in/none":
			rw.WriteHeader(http.StatusNoContent)
		case "/in/endless":
			rw.(http.Flusher).Flush()
			io.WriteString(rw, "12345")
		default:
			io.WriteString(rw, "123")
		}
	}), w.watch)
	const head = " HTTP/1.1\r\nHost: a\r\nReferer: http://b/\r\nUser-Agent: x\"y\r\nConnection: close\r\n"
	for i, c := range []struct {
		request string
		outcome Outcome
		room    bool
		line    string
	}{
		{"GET /in?q=1" + head, Admitted, true, `"GET /in?q=1 HTTP/1.1" 200 3 "http://b/" "x\"y" "shop" "admitted" 30.000`},
		{"HEAD /in" + head, Admitted, true, `"HEAD /in HTTP/1.1" 200 - "http://b/" "x\"y" "shop" "admitted" 30.000`},
		{"GET /in/none" + head, Admitted, true, `"GET /in/none HTTP/1.1" 204 - "http://b/" "x\"y" "shop" "admitted" 30.000`},
		{"GET /in/endless" + head, Admitted, true, `"GET /in/endless HTTP/1.1" 200 5 "http://b/" "x\"y" "shop" "admitted" 30.000`},
		{"GET /in HTTP/1.0\r\nHost: a\r\n", Admitted, true, `"GET /in HTTP/1.0" 200 3 "-" "-" "shop" "admitted" 30.000`},
		{"POST /in" + head + "Expect: 100-continue\r\nContent-Length: 0\r\n", Admitted, true, `"POST /in HTTP/1.1" 200 3`},
		{"GET /in/broken" + head, Failed, true, `"GET /in/broken HTTP/1.1" 502 `},
		{"GET /wait" + head, Queued, true, `"GET /wait HTTP/1.1" 200 `},
		{"POST /wait" + head + "Expect: 100-continue\r\nContent-Length: 5\r\n", Queued, true, `"POST /wait HTTP/1.1" 429 `},
		{"GET /reject" + head, Rejected, true, `"GET /reject HTTP/1.1" 200 `},
		{"GET /try" + head, Admitted, true, `"GET /try HTTP/1.1" 200 3 `},
		{"GET /else" + head, Bypassed, false, `"GET /else HTTP/1.1" 200 3 "http://b/" "x\"y" "-" "bypassed" -`},
		{"GET /panic" + head, Unavailable, false, `"GET /panic HTTP/1.1" 500 `},
		{"GET /a/..;/b" + head, Malformed, false, `"GET /a/..;/b HTTP/1.1" 400 `},
		{"GET /in HTTP/1.1\r\nHost a\r\n", Malformed, false, `400 `},
	} {
		f.raw(c.request + "\r\n")
		got := w.is(t, i+1, c.outcome, c.line, "127.0.0.1 - - [", `"`+c.outcome.String()+`"`)
		if got.room != (crdt.RoomID{}) != c.room || got.took <= 0 {
			t.Errorf("%q: counted as %+v", c.request, got)
		}
	}
	f.unused()
}

// TestRecordLastsAsLongAsTheAnswer: what is told of a request is told when its last byte is
// out, and the request counts as under way until then.
func TestRecordLastsAsLongAsTheAnswer(t *testing.T) {
	var w witness
	goOn := make(chan struct{})
	f := serve(t, fakeRooms{room: newRoom(always)}, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		io.WriteString(rw, "begin")
		rw.(http.Flusher).Flush()
		<-goOn
		io.WriteString(rw, "end")
	}), w.watch)
	c := f.dial()
	fmt.Fprint(c, plainGet)
	resp := c.response("GET")
	expect(t, resp.Body, "begin")
	equal(t, "connections and requests", fmt.Sprint(f.front.Load()), "1 1")
	w.mu.Lock()
	equal(t, "lines that are told before the end", len(w.lines), 0)
	w.mu.Unlock()
	close(goOn)
	rest(t, resp.Body)
	w.is(t, 1, Admitted, `" 200 8 "`)
	f.unused()
}

// TestRecordOfATunnel: a connection that was upgraded is one request, which ends with it.
func TestRecordOfATunnel(t *testing.T) {
	var w witness
	f := serveTo(t, fakeRooms{room: newRoom(always)}, socketOrigin(t), w.watch)
	c := upgraded(t, f, "/")
	equal(t, "connections and requests", fmt.Sprint(f.front.Load()), "1 1")
	c.Close()
	w.is(t, 1, Admitted, `" 101 - "`)
}

// TestRecordOfAQuestion: requests that other proxies ask about are counted, and have no line:
// whoever answers them has.
func TestRecordOfAQuestion(t *testing.T) {
	var w witness
	rejects := newRoom(never)
	rejects.settings.QueueingMethod = room.Reject
	f := judges(t, newTableRooms(map[string]Room{"/in": newRoom(always), "/wait": newRoom(never), "/reject": rejects}), w.watch)
	for i, c := range []struct {
		target string
		want   Outcome
	}{{"/in", Admitted}, {"/wait", Queued}, {"/reject", Rejected}, {"/else", Bypassed}, {"", Malformed}} {
		f.Judge(&Question{Peer: netip.MustParseAddr("192.0.2.1"), Method: "GET", Target: c.target, Host: "a"})
		if len(w.count) != i+1 || w.count[i].outcome != c.want {
			t.Errorf("%q: counted %+v, want %v", c.target, w.count, c.want)
		}
	}
	if _, n := f.Load(); n != 0 || len(w.lines) > 0 {
		t.Errorf("%d requests are under way, lines are %q", n, w.lines)
	}
}

// deaf counts and logs nothing.
type deaf struct{}

func (deaf) Record(crdt.RoomID, Outcome, time.Duration) {}
func (deaf) Write(*accesslog.Entry)                     {}

// TestTheLogTellsNothingOfVisitors has visitors come by whom an operator is told of
// trouble: those of an origin that is down, of a room that panics, too many of one
// address, requests that are not in order.
func TestTheLogTellsNothingOfVisitors(t *testing.T) {
	var log lockedLog
	r := newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict { panic("no room") })
	f := serveTo(t, fakeRooms{"/room", r}, nowhere, behindBalancer, func(c *Config) {
		c.Logger, c.Limits.ConnsPerAddress = slog.New(slog.NewTextHandler(&log, nil)), 2
	})
	const secret = "zqxjk"
	visit := func(target, more string) {
		t.Helper()
		c := f.through("192.0.2.77")
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %[2]s.example\r\nCookie: ropeline=%[2]s\r\nAuthorization: %[2]s\r\n%[3]s\r\n", target, secret, more)
		io.Copy(io.Discard, io.LimitReader(c, 20))
	}
	visit("/"+secret+"?"+secret, "Connection: close\r\n")
	visit("/room/"+secret, "Connection: close\r\n")
	visit("/\x1b[31m"+secret, "X-"+secret+": \x1b[31m\r\n")
	for range 5 { // more than may be open at a time
		f.through("192.0.2.77")
	}
	fmt.Fprintf(f.dial(), "GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n", secret, secret)
	for _, told := range []string{"request failed", "panic while serving", "too many connections", "PROXY header"} {
		waitFor(t, told, func() bool { return log.has(told) })
	}
	got := log.text()
	has(t, "the log, of what failed", got, "path=/"+secret+" ")
	lacks(t, "the log but for paths of requests that failed", strings.ReplaceAll(got, "path=/"+secret+" ", ""), secret, "192.0.2.77", "\x1b")
	for _, once := range []string{"too many connections", "does not begin with a PROXY header"} {
		equal(t, "how often is told: "+once, strings.Count(got, once), 1)
	}
	has(t, "the log, of the network of a flood", got, "192.0.2.0/24")
}
