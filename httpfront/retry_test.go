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
		methods string
		length  int64
		far     delivery
		others  bool
		want    bool
	}{
		// Nothing was sent: anything may go elsewhere, if there is an elsewhere.
		{"GET LOCK", none, undelivered, true, true},
		{"POST", some, undelivered, true, true},
		{"POST", http1.LengthChunked, undelivered, true, true},
		{"GET", none, undelivered, false, false},
		{"POST", some, undelivered, false, false},
		// Sent on a connection that the origin was closing.
		{"GET HEAD OPTIONS DELETE PROPFIND", none, unheard, true, true},
		{"GET", none, unheard, false, true}, // to the same origin, on a new connection
		{"GET PUT", 0, unheard, true, true},
		{"GET PUT", some, unheard, true, false},
		{"PUT", http1.LengthChunked, unheard, true, false},
		{"POST PATCH LOCK MOVE BREW", none, unheard, true, false},
		{"POST", 0, unheard, true, false},
		// The origin may have acted on it.
		{"GET", none, delivered, true, false},
		{"POST", some, delivered, true, false},
	} {
		for method := range strings.FieldsSeq(tt.methods) {
			r := &request{Request: http1.Request{Method: method, Length: tt.length}}
			equal(t, fmt.Sprintf("%s of %+v", method, tt), r.mayRepeat(tt.far, tt.others), tt.want)
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
	s.url = httpOrigin(t, func(n int, req *http.Request) (string, bool) {
		if req.Method == "HEAD" && req.UserAgent() == "ropeline-health-check" {
			return "HTTP/1.1 200 OK\r\n\r\n", false
		}
		s.asked.Add(1)
		switch script[min(n, len(script)-1)] {
		case 'o':
			return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(name), name), true
		case '1':
			return "HTTP/1.1 20", false
		case 'h':
			<-release
		}
		return "", false
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
		script  string // "" if nobody listens; if it begins with an answer, on a connection that is there already
		methods string
		body    string
		code    int
		asked   int32 // how often a got the request
		elseway bool  // whether b got it
	}{
		{"refused", "", "GET", "", 200, 0, true},
		{"refused, with a body", "", "POST", "x", 200, 0, true},
		{"closed on a new connection", "c", "GET HEAD PUT POST", "", 502, 1, false},
		{"closed on an old one", "oc", "GET DELETE PROPFIND", "", 200, 1, true},
		{"closed on an old one", "oc", "POST", "", 502, 1, false},
		{"closed on an old one", "oc", "POST PUT", "x", 502, 1, false},
		{"half an answer", "o1", "GET", "", 502, 1, false},
		{"no answer", "oh", "GET", "", 504, 1, false},
		{"no answer", "h", "GET", "", 504, 1, false},
	} {
		for method := range strings.FieldsSeq(tt.methods) {
			t.Run(tt.name+" "+method, func(t *testing.T) {
				waits := strings.HasSuffix(tt.script, "h")
				if waits {
					t.Parallel()
				}
				a, b := &scripted{url: nowhere}, newScripted(t, "b", "o")
				if tt.script != "" {
					a = newScripted(t, "a", tt.script)
				}
				f := serveTo(t, nil, "", func(c *Config) {
					c.Origins = origins(a.url+" weight=1000", b.url)
					if waits {
						c.Timeouts.Origin = 500 * time.Millisecond
					}
				})
				if strings.HasPrefix(tt.script, "o") {
					f.get("/").is(t, 200, "\r\n\r\na")
					a.asked.Store(0)
				}
				if got := f.do(method, "/", strings.NewReader(tt.body)).is(t, tt.code); tt.code == 200 {
					equal(t, "the answer", got.body, "b")
				}
				equal(t, "how often a was asked", a.asked.Load(), tt.asked)
				if n := b.asked.Load(); n > 0 != tt.elseway || n > 1 {
					t.Errorf("b was asked %d times, want it to be %v", n, tt.elseway)
				}
				equal(t, "places at the origins that are still taken", f.active(), 0)
			})
		}
	}
}

// TestAClosedConnectionOfTheOnlyOrigin is sent again to it, on a new one, unless retries are turned off.
func TestAClosedConnectionOfTheOnlyOrigin(t *testing.T) {
	f := serveTo(t, nil, newScripted(t, "a", "oc").url)
	f.gets(4, "/", 200)
	if s := f.front.Origins()[0].Origins[0]; s.Failures != 0 || s.State != "in" {
		t.Errorf("closing connections that are not in use is no failure: %+v", s)
	}
	f = serveTo(t, nil, newScripted(t, "a", "oc").url, func(c *Config) { c.Retries = -1 })
	f.gets(1, "/", 200)
	f.gets(1, "/", 502)
}

func TestUploadsGoElsewhereWhole(t *testing.T) {
	const size = 1 << 20
	sum := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	})
	f := serve(t, nil, sum, func(c *Config) {
		c.Origins.Servers = append(c.Origins.Servers, origins(nowhere+" weight=1000").Servers...)
	})
	for range 2 {
		equal(t, "the answer", f.do("POST", "/", zeros(size)).is(t, 200).body, fmt.Sprint(size, nil))
	}
	equal(t, "failures of the dead origin", f.front.Origins()[0].Origins[1].Failures, 2)
}

func TestUpgradesGoElsewhere(t *testing.T) {
	f := serveTo(t, nil, "", func(c *Config) {
		c.Origins = origins(nowhere+" weight=1000", socketOrigin(t))
	})
	_, resp := f.upgrade("/")
	equal(t, "the code", resp.StatusCode, 101)
}

// TestRoutesHaveOriginsAndLimitsOfTheirOwn looks at where requests end up.
func TestRoutesHaveOriginsAndLimitsOfTheirOwn(t *testing.T) {
	site := func(name string) string { return newScripted(t, name, "o").url }
	also := []room.Route{{Host: "tickets.example"}, {Path: "/seats"}}
	f := serveTo(t, fakeRooms{path: "/tickets/vip", room: newRoom(letIn)}, site("rest"), func(c *Config) {
		c.Limits.Body = 5
		c.Routes = []Route{
			{Name: "tickets", Path: "/tickets", Also: also, Origins: origins(site("tickets"))},
			{Name: "vip", Path: "/tickets/vip/", Origins: origins(site("vip")), Body: 10},
			{Name: "shop", Host: "shop.example", Origins: origins(site("shop"))},
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
			endsIn(t, fmt.Sprint(tt), got, "\r\n\r\n"+tt.want)
		}
	}
	var names []string
	for _, g := range f.front.Origins() {
		names = append(names, g.Name)
	}
	equal(t, "names in the status", strings.Join(names, ","), ",tickets,vip,shop")
}

// TestFailuresCarryAnID finds the same id in the answer and in the log.
func TestFailuresCarryAnID(t *testing.T) {
	var log lockedLog
	f := serveTo(t, nil, tcpOrigin(t, func(net.Conn, *bufio.Reader) {}), func(c *Config) { c.Logger = log.logger() })
	ids := map[string]bool{}
	for _, accept := range []string{"text/html", "application/json"} {
		got := f.get("/", "Accept", accept)
		id := got.Header.Get("X-Request-Id")
		equal(t, "the length of the id", len(id), 16)
		has(t, "the answer", got.body, id)
		has(t, "the log", log.text(), "request="+id, "origin http://127.0.0.1:", "wait for the response", "status=502")
		ids[id] = true
	}
	equal(t, "ids of two requests", len(ids), 2)
}

func TestAnOriginThatGoesOutIsLeftAlone(t *testing.T) {
	a, b := newScripted(t, "a", "c"), newScripted(t, "b", "o")
	f := serveTo(t, nil, "", func(c *Config) {
		c.Origins = origins(a.url, b.url)
		c.Passive = upstream.Passive{Failures: 2}
	})
	codes := map[int]int{}
	for range 20 {
		codes[f.get("/").StatusCode]++
	}
	equal(t, "answers by their codes", fmt.Sprint(codes), "map[200:18 502:2]")
	equal(t, "how often a was asked", a.asked.Load(), 2)
	if s := f.front.Origins()[0].Origins[0]; s.State != "ejected" || s.Reason == "" {
		t.Errorf("a is %+v", s)
	}
}
