package rate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// startBare starts a server that answers each request with a body of that size, and allocates nothing for one.
func startBare(t testing.TB, body int) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", body, strings.Repeat("x", body))
	serve := func(c net.Conn) {
		defer c.Close()
		head := make([]byte, 4096)
		for n := 0; ; {
			more, err := c.Read(head[n:])
			if err != nil {
				return
			}
			if n += more; bytes.HasSuffix(head[:n], []byte("\r\n\r\n")) { // each connection asks for one at a time
				if _, err := c.Write(answer); err != nil {
					return
				}
				n = 0
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l.Addr().String()
}

// mustRun runs cfg.
func mustRun(t *testing.T, cfg Config) Result {
	t.Helper()
	if cfg.Requests == nil {
		cfg.Requests = [][]byte{get("/")}
	}
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	failed := int64(0)
	for _, n := range r.Errors {
		failed += n
	}
	if r.Due != r.Answered+failed || r.Sent > r.Due || failed != r.Failed() {
		t.Errorf("%d were due, %d sent and %d answered, with errors %v: they do not add up", r.Due, r.Sent, r.Answered, r.Errors)
	}
	return r
}

func TestRunOpenModel(t *testing.T) {
	r := mustRun(t, Config{Address: startBare(t, 6), Rate: 2000, Conns: 8, Warm: 50 * time.Millisecond, Lasts: 500 * time.Millisecond, Drain: 10 * time.Second})
	if r.Model != Open || r.Answered != r.Due || r.Status[200] != r.Due {
		t.Errorf("got %+v, want an answer to each", r)
	}
	if r.Due != 1000 {
		t.Errorf("%d requests were due, want 1000", r.Due)
	}
	if l := r.Latency; !(0 < l.P50 && l.P50 <= l.P90 && l.P90 <= l.P99 && l.P99 <= l.P999 && l.P999 <= l.Max) || r.Late.Max > l.Max {
		t.Errorf("got %+v, and %+v late", l, r.Late)
	}
	if r.CPUShare <= 0 {
		t.Errorf("got a share of %v of a CPU", r.CPUShare)
	}
}

func TestRunClosedModel(t *testing.T) {
	r := mustRun(t, Config{Address: startBare(t, 100_000), Conns: 3, Lasts: 200 * time.Millisecond, Drain: 10 * time.Second})
	if r.Model != Closed || r.Due == 0 || r.Answered != r.Due || r.Late.Max != 0 {
		t.Errorf("got %+v, want an answer to each", r)
	}
}

func TestRunErrors(t *testing.T) {
	const nobody = "127.0.0.1:1" // a port that no system gives to anybody
	if _, err := Run(t.Context(), Config{Address: nobody, Requests: [][]byte{get("/")}}); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v, want that nobody is there", err)
	}
	if _, err := Run(t.Context(), Config{Address: nobody}); err == nil || !strings.Contains(err.Error(), "no request") {
		t.Errorf("got %v without a request", err)
	}
}

func TestRunIsStopped(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	r, err := Run(ctx, Config{Address: startBare(t, 6), Requests: [][]byte{get("/")}, Rate: 1000, Lasts: time.Hour})
	if !errors.Is(err, context.DeadlineExceeded) || r.Answered == 0 || r.Seconds > 60 {
		t.Errorf("got %v and %+v, want what was measured until then", err, r)
	}
}
