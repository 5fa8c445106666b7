package rate

import (
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const short = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func TestRunReadsAnswers(t *testing.T) {
	large := "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 200000) // several reads
	for _, tc := range []struct {
		name, text string
		goesOn     bool // the server leaves the connection open
	}{
		{"a length", short, true},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", true},
		{"many reads", large, true},
		{"close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", false},
		{"close without closing", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", true},
	} {
		for _, rate := range []float64{0, 500} {
			s := startScripted(t, says(tc.text, tc.goesOn))
			r := mustRun(t, Config{Address: s.address, Rate: rate, Conns: 3, Lasts: 100 * time.Millisecond, Drain: 20 * time.Second})
			if r.Due == 0 || r.Answered != r.Due || r.Status[200] != r.Due {
				t.Errorf("%s at %v/s: got %+v, want whole answers only", tc.name, rate, r)
			}
			if renewed := s.conns.Load() > 3; renewed == (tc.name == "a length" || tc.name == "chunks" || tc.name == "many reads") {
				t.Errorf("%s at %v/s: %d connections were made for %d answers", tc.name, rate, s.conns.Load(), r.Answered)
			}
		}
	}
}

func TestRunReadsAnswersByteByByte(t *testing.T) {
	const text = "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
	s := startScripted(t, func(_ int64, _ string, w net.Conn) bool {
		for i := range len(text) {
			if _, err := w.Write([]byte(text[i : i+1])); err != nil {
				return false
			}
		}
		return true
	})
	r := mustRun(t, Config{Address: s.address, Conns: 2, Lasts: 100 * time.Millisecond, Drain: 20 * time.Second})
	if r.Due == 0 || r.Status[503] != r.Due {
		t.Errorf("got %+v, want 503 for each", r)
	}
}

func TestRunCountsWhatIsNoAnswer(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		goesOn     bool
		want       []ErrorKind // any of them
	}{
		{"no HTTP", "SSH-2.0-OpenSSH\r\n", true, []ErrorKind{ErrMalformed}},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", true, []ErrorKind{ErrMalformed}},
		{"two answers", short + short, true, []ErrorKind{ErrMalformed}},
		{"no length", "HTTP/1.1 200 OK\r\n\r\nok", false, []ErrorKind{ErrMalformed}},
		{"nothing", "", false, []ErrorKind{ErrClosed, ErrReset}},
		{"half a head", short[:20], false, []ErrorKind{ErrClosed, ErrReset}},
		{"half a body", short[:len(short)-1], false, []ErrorKind{ErrClosed, ErrReset}},
		{"no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", false, []ErrorKind{ErrClosed, ErrReset}},
	} {
		s := startScripted(t, says(tc.text, tc.goesOn))
		r := mustRun(t, Config{Address: s.address, Rate: 200, Conns: 3, Lasts: 100 * time.Millisecond, Drain: 20 * time.Second})
		if made := s.conns.Load(); r.Due != 20 || r.Answered != 0 || made <= 3 {
			t.Errorf("%s: got %+v by %d connections, want no answer, and new connections", tc.name, r, made)
		}
		for kind := range r.Errors {
			if !slices.Contains(tc.want, kind) {
				t.Errorf("%s: got errors %v (%s), want %v", tc.name, r.Errors, r.LastError, tc.want)
			}
		}
	}
}

// TestRunDialsAgain has the server end every other connection after its answer, without a word.
func TestRunDialsAgain(t *testing.T) {
	s := startScripted(t, func(conn int64, _ string, w net.Conn) bool {
		_, err := w.Write([]byte(short))
		return err == nil && conn%2 == 0
	})
	r := mustRun(t, Config{Address: s.address, Rate: 100, Conns: 2, Lasts: 200 * time.Millisecond, Drain: 20 * time.Second})
	if made := s.conns.Load(); r.Answered == 0 || made <= 2 {
		t.Errorf("got %+v by %d connections, want answers, and new connections", r, made)
	}
}

func TestRunGivesUpAtTheEnd(t *testing.T) {
	s := startScripted(t, func(int64, string, net.Conn) bool { return true })
	const lasts = 100 * time.Millisecond
	r := mustRun(t, Config{Address: s.address, Rate: 100, Conns: 1, Lasts: lasts, Drain: time.Millisecond})
	if r.Due != 10 || r.Sent != 1 || r.Errors[ErrUnanswered] != 1 || r.Errors[ErrUnsent] != 9 {
		t.Errorf("got %+v, want one request sent, and the others in line", r)
	}
	if r.Latency.Max < float64(lasts.Microseconds()) {
		t.Errorf("the first has waited %v µs, and it was given up after %v", r.Latency.Max, lasts)
	}
}

func TestRunEndsWhenTheServerIsGone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		l.Close()
		if err == nil {
			c.Close()
		}
	}()
	r, err := Run(t.Context(), Config{Address: l.Addr().String(), Rate: 100, Conns: 1, Lasts: time.Hour, Requests: [][]byte{get("/")}})
	if err == nil || !strings.Contains(err.Error(), "refused") || r.Answered != 0 {
		t.Errorf("got %+v and %v, want that nobody is there", r, err)
	}
}

func TestRequestsTakeTurns(t *testing.T) {
	var mu sync.Mutex
	var asked map[int64][]string // by connection
	s := startScripted(t, func(conn int64, line string, w net.Conn) bool {
		mu.Lock()
		asked[conn] = append(asked[conn], strings.Fields(line)[1])
		mu.Unlock()
		_, err := w.Write([]byte(short))
		return err == nil
	})
	run := func(conns int, onePerConn bool) map[int64][]string {
		asked = map[int64][]string{}
		s.conns.Store(0)
		mustRun(t, Config{Address: s.address, Conns: conns, OnePerConn: onePerConn, Lasts: 50 * time.Millisecond, Drain: 20 * time.Second, Requests: [][]byte{get("/0"), get("/1"), get("/2")}})
		mu.Lock()
		defer mu.Unlock()
		return asked
	}
	inTurn := func(targets []string, begin int) bool {
		for i, target := range targets {
			if target != []string{"/0", "/1", "/2"}[(begin+i)%3] {
				return false
			}
		}
		return len(targets) > 0
	}
	if got := run(1, false); !inTurn(got[0], 0) {
		t.Errorf("one connection asked for %v", got[0])
	}
	seen := map[string]int{}
	for _, targets := range run(4, true) {
		for _, target := range targets {
			if target != targets[0] {
				t.Fatalf("one of four connections with a request of their own asked for %v", targets)
			}
		}
		seen[targets[0]]++
	}
	if want := map[string]int{"/0": 2, "/1": 1, "/2": 1}; !maps.Equal(seen, want) {
		t.Errorf("four connections asked for %v, want %v", seen, want)
	}
}
