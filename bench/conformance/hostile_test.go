//go:build unix

package conformance

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// hostileCases are those of visitors who want in without a place: each room is full.
func hostileCases() []testCase {
	return []testCase{
		{id: "fields", what: "with more fields than fit", places: 1, run: manyFields},
		{id: "large", what: "with fields that are too large", places: 1, run: largeFields},
		{id: "bytes", what: "with bytes that no field may hold", places: 1, run: strangeBytes},
		{id: "names", what: "naming several hosts", places: 1, run: severalHosts},
		{id: "half", what: "closing its half of the connection after the question", places: 1, run: halfCloses},
	}
}

// TestHostileVisitorsAreKeptOut runs them with the examples as they are, and as they let everybody in where no node
// answers: nothing that a visitor sends may be taken for that.
func TestHostileVisitorsAreKeptOut(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real proxies")
	}
	for _, open := range []bool{false, true} {
		t.Run(fmt.Sprintf("open %v", open), func(t *testing.T) {
			eachProxy(t, options{binary: built(t), open: open}, func(t *testing.T, o options, fe frontEnd) {
				err := runCases(t.Context(), o, fe, hostileCases(), column{fe, map[string]string{}})
				if errors.Is(err, errNotHere) {
					t.Skip(err)
				}
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// elsewhere is a host without a room.
const elsewhere = "elsewhere.example"

func manyFields(t *try) string {
	var requests []string
	for n := 85; n <= 105; n++ {
		requests = append(requests, t.get(strings.Repeat("X-A: b\r\n", n)), t.get(strings.Repeat("Cookie: a=b\r\n", n)))
	}
	requests = append(requests, t.get(strings.Repeat("X-A: b\r\n", 1000)))
	return t.keptOut(requests, false)
}

func largeFields(t *try) string {
	var requests []string
	add := func(n int) {
		requests = append(requests, t.get("Cookie: a="+strings.Repeat("b", n)+"\r\n"), t.get("X-A: "+strings.Repeat("b", n)+"\r\n"),
			t.request("GET", "/"+strings.Repeat("b", n), ""))
	}
	for n := 7 << 10; n <= 17<<10; n += 256 { // around what nginx and HAProxy take
		add(n)
	}
	for n := 1; n <= 4; n++ {
		requests = append(requests, t.get(strings.Repeat("Cookie: a="+strings.Repeat("b", 7<<10)+"\r\n", n)))
	}
	for _, n := range []int{63 << 10, 100 << 10, 128 << 10, 140 << 10, 500 << 10, 2 << 20} { // around what nodes take, and Go
		add(n)
	}
	return t.keptOut(requests, false)
}

func strangeBytes(t *try) string {
	var requests []string
	for _, b := range []string{"\x00", "\x01", "\x0b", "\x1f", "\x7f", "\r", "\x80", "\xff"} {
		for _, name := range []string{"X-A", "Cookie", "Accept", "Accept-Language", "User-Agent", "Host", "Upgrade", "Authorization"} {
			requests = append(requests, t.get(name+": a"+b+"b\r\n"))
		}
		requests = append(requests, t.get("X"+b+"A: b\r\n"), t.request("GET", "/"+b, ""), t.request("G"+b+"T", "/", ""))
	}
	for _, field := range []string{"X A: b", "X-A : b", " X-A: b", "(A): b", "X-A", ": b", "Expect: a", "Expect: 100-continue", "Transfer-Encoding: a", "Connection: cookie, host, x-forwarded-host", "Content-Length: a"} {
		requests = append(requests, t.get(field+"\r\n"))
	}
	return t.keptOut(requests, false)
}

func severalHosts(t *try) string {
	requests := []string{
		"GET http://" + elsewhere + "/cart HTTP/1.1\r\nHost: " + t.host + "\r\n\r\n",
		"GET http://" + t.host + "/cart HTTP/1.1\r\nHost: " + elsewhere + "\r\n\r\n",
		"GET http://" + elsewhere + "@" + t.host + "/cart HTTP/1.1\r\nHost: " + t.host + "\r\n\r\n",
		"GET /cart HTTP/1.1\r\nHost: " + t.host + "\r\nHost: " + elsewhere + "\r\n\r\n",
		"GET /cart HTTP/1.1\r\nHost: " + elsewhere + "\r\nHost: " + t.host + "\r\n\r\n",
		"GET //" + elsewhere + "/cart HTTP/1.1\r\nHost: " + t.host + "\r\n\r\n",
		"GET /cart HTTP/1.1\r\nHost: " + strings.ToUpper(t.host) + "\r\n\r\n",
		"GET /cart HTTP/1.1\r\nHost: " + t.host + ":80\r\n\r\n",
		"GET /cart HTTP/1.1\r\nHost: " + t.host + ".\r\n\r\n",
	}
	for _, name := range []string{"X-Forwarded-Host", "X_Forwarded_Host", "X-Original-Host", "X-Host"} {
		requests = append(requests, t.get(name+": "+elsewhere+"\r\n"))
	}
	return t.keptOut(append(requests, t.get("Forwarded: host="+elsewhere+"\r\n")), false)
}

func halfCloses(t *try) string {
	var requests []string
	for range 10 {
		requests = append(requests, t.get(""), t.request("POST", "/cart", "Content-Length: 4\r\n")+"item")
	}
	return t.keptOut(requests, true)
}

// get is a request with some fields more than usual, each with its end of line.
func (t *try) get(fields string) string { return t.request(http.MethodGet, "/cart", fields) }

func (t *try) request(method, target, fields string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: " + t.host + "\r\nAccept: text/html\r\n" + fields + "\r\n"
}

// keptOut sends requests to a full room, each by a connection of its own, and fails if one
// of them reaches the site, or if the proxy serves nobody afterwards.
func (t *try) keptOut(requests []string, half bool) string {
	t.stack.site.refused()
	for _, request := range requests {
		status := ""
		err := rig.Try(func() {
			status = t.say(request, half)
			t.unserved()
		})
		t.must(err == nil, "%.120q, %d bytes, answer %q: %w", request, len(request), status, err)
	}
	a := t.in.ask(http.MethodGet)
	t.must(a.fromSite(), "who is in gets %v afterwards", a)
	t.stack.site.take(t.host)
	return "kept out"
}

// unserved fails if the site was asked for what is in t's room, in whatever way its host
// is written.
func (t *try) unserved() {
	n := t.stack.site.refused()
	t.must(n == 0, "the site was sent %d requests that it refuses", n)
	for _, host := range t.stack.site.hosts() {
		name, _, _ := strings.Cut(strings.ToLower(host), ":")
		if strings.TrimSuffix(name, ".") == t.host {
			t.stack.site.take(host)
			t.must(false, "the site was asked for %s", host)
		}
	}
}

// say sends bytes, and returns the status line of the answer; "" if the proxy closed the
// connection without one, as it may.
func (t *try) say(request string, half bool) string {
	var d net.Dialer
	c := rig.Got(d.DialContext(t.ctx, "tcp", t.stack.proxy.addr))
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	written := make(chan struct{})
	go func() { // ends with the connection
		defer close(written)
		if _, err := c.Write([]byte(request)); err == nil && half {
			c.(*net.TCPConn).CloseWrite()
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	c.Close()
	<-written
	if err == nil {
		resp.Body.Close() // fails, as the connection is closed
		return resp.Status
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		rig.Must(err)
	}
	return ""
}

// hosts returns the hosts, as they were written, for which the site was asked since they
// were taken.
func (s *site) hosts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.asked))
}

// refused returns how many requests have come since it was called last that net/http
// refused, as not every server does.
func (s *site) refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.begun - s.taken
	s.begun, s.taken = 0, 0
	return n
}
