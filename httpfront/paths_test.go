package httpfront

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/node/room"
)

// tableRooms has rooms at paths, found as those of a node are.
type tableRooms struct{ table room.Table[Room] }

func newTableRooms(rooms map[string]Room) *tableRooms {
	t := &tableRooms{}
	for path, r := range rooms {
		t.table.Add(room.Route{Path: path}, r)
	}
	return t
}

func (t *tableRooms) Route(host, path string) Room {
	r, _ := t.table.Find(host, path)
	return r
}

// TestPathsWithTwoReadingsAreRefused: what one origin takes for the path of a room and
// another for none reaches neither, and a proxy that asks about it is told no.
func TestPathsWithTwoReadingsAreRefused(t *testing.T) {
	r := ruled(`starts_with(http.request.uri.path, "/static/")`)
	free := newRoom(letIn)
	origin := &recorder{}
	f := serve(t, newTableRooms(map[string]Room{"/": r, "/free": free, "/tickets": newRoom(never)}), origin, trustLoopback)
	configure(t, f.front, r.settings)
	for _, target := range []string{
		"/static/../buy", "/static/..;/buy", `/static/..\buy`, "/static/..%5cbuy", "/static/%2e%2e/buy", "/static/..%3B/buy", "/static/..%2fbuy",
		"/tickets/%2e%2e/free", "/free/../tickets", "/.;/tickets", `/\tickets`, "/tickets%00",
		"/free%2fbuy", "/tickets;%2f/../free", "/tickets%2f..%2ffree",
	} {
		got := f.raw("GET " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.Contains(got, stateField+": refused\r\n") {
			t.Errorf("%s: got %q", target, got)
		}
		if a := f.front.Judge(asks("GET", target)); a.Outcome != Malformed || a.Status != 400 || !strings.HasSuffix(got, string(a.Body)) {
			t.Errorf("%s: a proxy that asks is told %v, %d %q", target, a.Outcome, a.Status, a.Body)
		}
	}
	if paths := origin.take(); len(paths) != 0 {
		t.Errorf("the origin was asked for %q", paths)
	}
	for _, target := range []string{`/static/a?back=..\..`, "/static/%252e%252e/x", "/free/a%2fb", "/free;x"} {
		if got := f.raw("GET " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") || strings.Contains(got, stateField) {
			t.Errorf("%s: got %q", target, got)
		}
	}
}

// TestParametersOfPathsLeadNowhereElse: servers that know parameters of segments, and
// those that do not, serve what stands before them.
func TestParametersOfPathsLeadNowhereElse(t *testing.T) {
	f := serve(t, newTableRooms(map[string]Room{"/tickets": newRoom(never)}), http.HandlerFunc(echo), trustLoopback)
	for target, want := range map[string]bool{
		"/tickets;jsessionid=1": true, "/tickets;x/a": true, "/;/tickets": true, "/;a=b/tickets": true, "/tickets%3Bx": true, "/;//tickets;/": true,
		"/%74ickets": true, "/tickets//": true,
		"/ticketsx;y": false, "/free;tickets": false, "/;": false,
	} {
		got := f.raw("GET " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if strings.Contains(got, stateField+": waiting") != want {
			t.Errorf("%s: waits is not %v: %q", target, want, got)
		}
		if a := f.front.Judge(asks("GET", target)); (a.Outcome == Queued) != want {
			t.Errorf("%s: a proxy that asks is told %v", target, a.Outcome)
		}
	}
}

// TestOnlyHostsThatAreServed: what is asked for under another name is refused, of proxies
// that ask as well.
func TestOnlyHostsThatAreServed(t *testing.T) {
	origin := &recorder{}
	f := serve(t, fakeRooms{path: "/tickets", room: newRoom(letIn)}, origin, func(c *Config) {
		c.Hosts, c.TrustedProxies = []string{"shop.example", "[::1]"}, loopback
	})
	for host, served := range map[string]bool{
		"shop.example": true, "SHOP.Example.:8080": true, "[0::1]:80": true,
		"www.shop.example": false, "127.0.0.1": false, "example": false, "shop.example.evil": false, "": false,
	} {
		head := "OPTIONS /tickets HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"
		if host == "" {
			head = "GET /tickets HTTP/1.0\r\n\r\n"
		}
		got := f.raw(head)
		if strings.HasPrefix(got, "HTTP/1.1 200 ") != served || !served && !strings.HasPrefix(got, "HTTP/1.1 421 ") {
			t.Errorf("%q: got %q", host, got)
		}
		if n := len(origin.take()); (n == 1) != served {
			t.Errorf("%q: the origin was asked %d times", host, n)
		}
		if host == "" {
			continue
		}
		q := asks("GET", "/free")
		q.Host = host
		if a := f.front.Judge(q); (a.Outcome == Admitted) != served || !served && a.Status != 421 {
			t.Errorf("%q: a proxy that asks is told %v, %d", host, a.Outcome, a.Status)
		}
	}
	// The name that counts is the one that the visitor asked for.
	if got := f.get("/free", "Host", "origin.internal", "X-Forwarded-Host", "shop.example"); got.StatusCode != 200 {
		t.Errorf("behind a proxy that rewrites Host: got %d %q", got.StatusCode, got.body)
	}
}

// TestTargetsThatBeginWithTwoSlashes: sites that resolve them as links take what follows for
// the name of a host, and serve another path than was queued for. Who asks is sent to the
// same path below this host, wherever else the slashes would lead.
func TestTargetsThatBeginWithTwoSlashes(t *testing.T) {
	f := serve(t, newTableRooms(map[string]Room{"/tickets": newRoom(never)}), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the site is asked for %s", r.RequestURI)
	}), trustLoopback)
	for _, tt := range []struct{ method, target, to string }{
		{"GET", "//x/tickets", "/x/tickets"},
		{"HEAD", "//x/tickets", "/x/tickets"},
		{"GET", "///x/tickets?x=://", "/x/tickets?x=://"},
		{"GET", "http://a//x/tickets", "/x/tickets"},
		{"GET", "//", "/"},
		{"GET", "//?a", "/?a"},
		{"GET", `//x/a?b=\`, `/x/a?b=\`},
		{"POST", "//x/tickets", "/x/tickets"}, // sends what it has once more
		{"OPTIONS", "//x/tickets", "/x/tickets"},
		{"GET", `//\x/tickets`, ""},
		{"GET", `/\x/tickets`, ""},
		{"GET", `//x/..//tickets`, ""},
		{"GET", `//%5cx/tickets`, ""},
	} {
		got := f.raw(tt.method + " " + tt.target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		want := "HTTP/1.1 400 "
		if tt.to != "" {
			want = "HTTP/1.1 308 "
		}
		if !strings.HasPrefix(got, want) || strings.Contains(got, "\r\nLocation: ") != (tt.to != "") || !strings.Contains(got, "\r\nLocation: "+tt.to+"\r\n") && tt.to != "" {
			t.Errorf("%s %s: got %q, want %sto %q", tt.method, tt.target, got, want, tt.to)
		}
		if tt.target[0] != '/' {
			continue
		}
		if a := f.front.Judge(asks(tt.method, tt.target)); a.Outcome != Malformed || a.Status != 400 {
			t.Errorf("%s %s: a proxy that asks is told %v with %d", tt.method, tt.target, a.Outcome, a.Status)
		}
	}
}
