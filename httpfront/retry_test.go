package httpfront

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node/room"
)

func TestWhatMayBeSentAgain(t *testing.T) {
	const none, some = -1, 5
	for _, tt := range []struct {
		method string
		length int64
		far    delivery
		others bool
		want   bool
	}{
		// Nothing was sent: anything may go elsewhere, if there is an elsewhere.
		{"GET", none, undelivered, true, true},
		{"POST", some, undelivered, true, true},
		{"POST", http1.LengthChunked, undelivered, true, true},
		{"LOCK", none, undelivered, true, true},
		{"GET", none, undelivered, false, false},
		{"POST", some, undelivered, false, false},
		// Sent on a connection that the origin was closing.
		{"GET", none, unheard, true, true},
		{"GET", none, unheard, false, true}, // to the same origin, on a new connection
		{"GET", 0, unheard, true, true},
		{"HEAD", none, unheard, true, true},
		{"OPTIONS", none, unheard, true, true},
		{"PUT", 0, unheard, true, true},
		{"DELETE", none, unheard, true, true},
		{"PROPFIND", none, unheard, true, true},
		{"PUT", some, unheard, true, false},
		{"PUT", http1.LengthChunked, unheard, true, false},
		{"GET", some, unheard, true, false},
		{"POST", none, unheard, true, false},
		{"POST", 0, unheard, true, false},
		{"PATCH", none, unheard, true, false},
		{"LOCK", none, unheard, true, false},
		{"MOVE", none, unheard, true, false},
		{"BREW", none, unheard, true, false},
		// The origin may have acted on it.
		{"GET", none, delivered, true, false},
		{"POST", some, delivered, true, false},
	} {
		r := &request{Request: http1.Request{Method: tt.method, Length: tt.length}}
		if got := r.mayRepeat(tt.far, tt.others); got != tt.want {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}

// scripted is an origin that treats the requests of each connection as its
// script says, letter by letter, and those beyond it as the last letter:
//
//	o  answers
//	c  reads the request and closes
//	1  answers with half a status line and closes
//	h  says nothing until the test ends
type scripted struct {
	url   string
	asked atomic.Int32
}

func newScripted(t *testing.T, name, script string) *scripted {
	s := &scripted{}
	release := make(chan struct{})
	s.url = tcpOrigin(t, func(c net.Conn, br *bufio.Reader) {
		for i := 0; ; i++ {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			s.asked.Add(1)
			io.Copy(io.Discard, req.Body)
			switch script[min(i, len(script)-1)] {
			case 'o':
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(name), name)
			case '1':
				io.WriteString(c, "HTTP/1.1 20")
				return
			case 'h':
				<-release
				return
			default:
				return
			}
		}
	})
	t.Cleanup(func() { close(release) })
	return s
}

// TestRetries sends a request to the origin "a", which is as the script says,
// before it would come to "b", which is well.
func TestRetries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		script  string // "" if nobody listens
		warm    bool   // after another request on the same connection
		method  string
		body    string
		code    int
		asked   int32 // how often a got the request
		elseway bool  // whether b got it
	}{
		{"refused", "", false, "GET", "", 200, 0, true},
		{"refused, with a body", "", false, "POST", "x", 200, 0, true},
		{"closed on a new connection", "c", false, "GET", "", 502, 1, false},
		{"closed on a new connection", "c", false, "HEAD", "", 502, 1, false},
		{"closed on a new connection", "c", false, "PUT", "", 502, 1, false},
		{"closed on a new connection", "c", false, "POST", "", 502, 1, false},
		{"closed on an old one", "oc", true, "GET", "", 200, 1, true},
		{"closed on an old one", "oc", true, "DELETE", "", 200, 1, true},
		{"closed on an old one", "oc", true, "PROPFIND", "", 200, 1, true},
		{"closed on an old one", "oc", true, "POST", "", 502, 1, false},
		{"closed on an old one", "oc", true, "POST", "x", 502, 1, false},
		{"closed on an old one", "oc", true, "PUT", "x", 502, 1, false},
		{"half an answer", "o1", true, "GET", "", 502, 1, false},
		{"no answer", "oh", true, "GET", "", 504, 1, false},
		{"no answer", "h", false, "GET", "", 504, 1, false},
	} {
		t.Run(tt.name+" "+tt.method, func(t *testing.T) {
			if strings.HasSuffix(tt.script, "h") {
				t.Parallel() // it waits
			}
			a, b := &scripted{url: nowhere}, newScripted(t, "b", "o")
			if tt.script != "" {
				a = newScripted(t, "a", tt.script)
			}
			f := serveTo(t, nil, "", func(c *Config) {
				c.Origins = origins(t, a.url+" weight=1000", b.url)
				if strings.HasSuffix(tt.script, "h") {
					c.Timeouts.Origin = 500 * time.Millisecond
				}
			})
			if tt.warm {
				if got := f.get("/"); got.body != "a" {
					t.Fatalf("the first request: got %d %q", got.StatusCode, got.body)
				}
				a.asked.Store(0)
			}
			got := f.do(tt.method, "/", strings.NewReader(tt.body))
			if got.StatusCode != tt.code || tt.code == 200 && got.body != "b" {
				t.Errorf("got %d %q, want %d", got.StatusCode, got.body, tt.code)
			}
			if n := a.asked.Load(); n != tt.asked {
				t.Errorf("a was asked %d times, want %d", n, tt.asked)
			}
			if n := b.asked.Load(); n > 0 != tt.elseway || n > 1 {
				t.Errorf("b was asked %d times, want it to be %v", n, tt.elseway)
			}
			if n := f.active(); n != 0 {
				t.Errorf("%d places at the origins are still taken", n)
			}
		})
	}
}

// TestAClosedConnectionOfTheOnlyOrigin is sent again to it, on a new one.
func TestAClosedConnectionOfTheOnlyOrigin(t *testing.T) {
	a := newScripted(t, "a", "oc")
	f := serveTo(t, nil, a.url)
	for i := range 4 {
		if got := f.get("/"); got.StatusCode != 200 {
			t.Fatalf("request %d: got %d", i, got.StatusCode)
		}
	}
	if s := f.front.Origins()[0].Origins[0]; s.Failures != 0 || s.State != "in" {
		t.Errorf("closing connections that are not in use is no failure: %+v", s)
	}
}

func TestRetriesCanBeTurnedOff(t *testing.T) {
	a := newScripted(t, "a", "oc")
	f := serveTo(t, nil, a.url, func(c *Config) { c.Retries = -1 })
	for _, want := range []int{200, 502} {
		if got := f.get("/"); got.StatusCode != want {
			t.Errorf("got %d, want %d", got.StatusCode, want)
		}
	}
}

func TestUploadsGoElsewhereWhole(t *testing.T) {
	const size = 4 << 20
	sum := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	})
	f := serve(t, nil, sum, func(c *Config) {
		c.Origins.Servers = append(c.Origins.Servers, origins(t, nowhere+" weight=1000").Servers...)
	})
	for range 2 {
		if got := f.do("POST", "/", zeros(size)); got.body != fmt.Sprint(size, nil) {
			t.Errorf("got %d %q", got.StatusCode, got.body)
		}
	}
	if s := f.front.Origins()[0].Origins[1]; s.Failures != 2 {
		t.Errorf("the dead origin is %+v", s)
	}
}

func TestUpgradesGoElsewhere(t *testing.T) {
	f := serveTo(t, nil, "", func(c *Config) {
		c.Origins = origins(t, nowhere+" weight=1000", socketOrigin(t))
	})
	if _, resp := f.upgrade("/"); resp.StatusCode != 101 {
		t.Errorf("got %d", resp.StatusCode)
	}
}

// TestRoutesHaveOriginsAndLimitsOfTheirOwn looks at where requests end up.
func TestRoutesHaveOriginsAndLimitsOfTheirOwn(t *testing.T) {
	site := func(name string) string { return newScripted(t, name, "o").url }
	vip := newRoom(letIn)
	also := []room.Route{{Host: "tickets.example"}, {Path: "/seats"}}
	f := serveTo(t, fakeRooms{path: "/tickets/vip", room: vip}, site("rest"), func(c *Config) {
		c.Limits.Body = 5
		c.Routes = []Route{
			{Name: "tickets", Path: "/tickets", Also: also, Origins: origins(t, site("tickets"))},
			{Name: "vip", Path: "/tickets/vip/", Origins: origins(t, site("vip")), Body: 10},
			{Name: "shop", Host: "shop.example", Origins: origins(t, site("shop"))},
			{Name: "shop tickets", Host: "shop.example", Path: "/tickets", Body: 1},
		}
	})
	for _, tt := range []struct {
		host, path string
		body       int
		want       string
	}{
		{"a", "/", 5, "rest"},
		{"a", "/ticketsx", 0, "rest"},
		{"a", "/", 6, "413 the body is too long\n"},
		{"a", "/tickets", 5, "tickets"},
		{"a", "/tickets/", 0, "tickets"},
		{"tickets.example", "/", 5, "tickets"},
		{"tickets.example", "/tickets/vip", 0, "tickets"}, // of the exact host
		{"a", "/seats/7", 0, "tickets"},
		{"a", "/tickets//vi%70", 10, "vip"},
		{"a", "/tickets/vip/1", 11, "413 the body is too long\n"},
		{"shop.example", "/", 0, "shop"},
		{"SHOP.example.:80", "/x", 5, "shop"},
		{"shop.example", "/tickets/vip", 1, "rest"}, // a limit of its own only
		{"shop.example", "/tickets", 2, "413 the body is too long\n"},
	} {
		for _, kind := range []string{"Content-Length: %d\r\n\r\n%s", "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"} {
			if tt.body == 0 && strings.HasPrefix(kind, "T") {
				continue
			}
			got := f.raw(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n"+kind, tt.path, tt.host, tt.body, strings.Repeat("x", tt.body)))
			if !strings.HasSuffix(got, "\r\n\r\n"+tt.want) {
				t.Errorf("%s%s, %d bytes: got %q, want %q", tt.host, tt.path, tt.body, got, tt.want)
			}
		}
	}
	var names []string
	for _, g := range f.front.Origins() {
		names = append(names, g.Name)
	}
	if got := strings.Join(names, ","); got != ",tickets,vip,shop" {
		t.Errorf("the status names %s", got)
	}
}

// TestFailuresCarryAnID finds the same id in the answer and in the log.
func TestFailuresCarryAnID(t *testing.T) {
	var log lockedLog
	f := serveTo(t, nil, tcpOrigin(t, func(net.Conn, *bufio.Reader) {}), func(c *Config) { c.Logger = log.logger() })
	page := f.get("/", "Accept", "text/html")
	program := f.get("/", "Accept", "application/json")
	for _, got := range []reply{page, program} {
		id := got.Header.Get("X-Request-Id")
		if len(id) != 16 || !strings.Contains(got.body, id) || !log.has("request="+id) {
			t.Errorf("id %q, body %q, log %s", id, got.body, log.text())
		}
	}
	if !log.has("origin http://127.0.0.1:") || !log.has("wait for the response") || !log.has("status=502") {
		t.Errorf("the log says %s", log.text())
	}
	if page.Header.Get("X-Request-Id") == program.Header.Get("X-Request-Id") {
		t.Error("two requests have one id")
	}
}

func TestAnOriginThatGoesOutIsLeftAlone(t *testing.T) {
	a, b := newScripted(t, "a", "c"), newScripted(t, "b", "o")
	f := serveTo(t, nil, "", func(c *Config) {
		c.Origins = origins(t, a.url, b.url)
		c.Passive = upstream.Passive{Failures: 2}
	})
	failed := 0
	for range 20 {
		if got := f.get("/"); got.StatusCode != 200 {
			failed++
		}
	}
	if failed != 2 || a.asked.Load() != 2 {
		t.Errorf("%d requests failed, a was asked %d times, want 2", failed, a.asked.Load())
	}
	if s := f.front.Origins()[0].Origins[0]; s.State != "ejected" || s.Reason == "" {
		t.Errorf("a is %+v", s)
	}
}
