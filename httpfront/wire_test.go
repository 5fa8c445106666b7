package httpfront

import (
	"bytes"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// asker returns what sends a request and reads the whole answer, and allocates nothing.
func asker(tb testing.TB, c net.Conn, request string) func() {
	tb.Helper()
	c.SetDeadline(time.Now().Add(time.Minute))
	bytesOf, buf := []byte(request), make([]byte, 32<<10)
	field, end := []byte("Content-Length: "), []byte("\r\n\r\n")
	return func() {
		if _, err := c.Write(bytesOf); err != nil {
			tb.Fatal(err)
		}
		for n, want := 0, -1; want < 0 || n < want; {
			k, err := c.Read(buf[n:])
			if err != nil {
				tb.Fatal(err)
			}
			n += k
			if head := bytes.Index(buf[:n], end); want < 0 && head >= 0 {
				at := bytes.Index(buf[:head], field)
				if at < 0 {
					tb.Fatalf("an answer without a length: %q", buf[:head])
				}
				length := 0
				for _, d := range buf[at+len(field) : head] {
					if d < '0' || d > '9' {
						break
					}
					length = length*10 + int(d-'0')
				}
				want = head + len(end) + length
			}
		}
	}
}

// counting counts what is written to its connections.
type counting struct {
	net.Listener
	writes atomic.Int64
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConn{c, l}, nil
}

type countedConn struct {
	net.Conn
	of *counting
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.of.writes.Add(1)
	return c.Conn.Write(p)
}

// A call of the system for each answer is most of what an answer costs.
func TestAnswersGoOutInOneWrite(t *testing.T) {
	const requests = 50
	for name, r := range map[string]*fakeRoom{"of the site": newRoom(letIn), "of who waits": newRoom(never)} {
		t.Run(name, func(t *testing.T) {
			l := &counting{}
			f := serve(t, fakeRooms{room: r}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "1500") // so that it is one write of the origin
				w.Write(make([]byte, 1500))
			}), func(c *Config) { l.Listener, c.Listener = c.Listener, l })
			ask := asker(t, f.dial(), "GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n")
			for range requests {
				ask()
			}
			equal(t, "writes for so many answers", l.writes.Load(), requests)
		})
	}
}

// answering returns the address of an origin that answers every read and allocates nothing.
func answering(tb testing.TB) string {
	tb.Helper()
	ln := loopbackListener(tb)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go answerAll(c)
		}
	}()
	return "http://" + ln.Addr().String()
}
