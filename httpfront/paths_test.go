package httpfront

import (
	"net/http"
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
	origin := &recorder{}
	f := serve(t, newTableRooms(map[string]Room{"/": r, "/free": newRoom(letIn), "/tickets": newRoom(never)}), origin, trustLoopback)
	configure(t, f.front, r.settings)
	for _, target := range []string{
		"/static/../buy", "/static/..;/buy", `/static/..\buy`, "/static/..%5cbuy", "/static/%2e%2e/buy", "/static/..%3B/buy", "/static/..%2fbuy",
		"/tickets/%2e%2e/free", "/free/../tickets", "/.;/tickets", `/\tickets`, "/tickets%00",
		"/free%2fbuy", "/tickets;%2f/../free", "/tickets%2f..%2ffree",
	} {
		got := f.send("GET", target, "Host", "a").is(t, 400, stateField+": refused\r\n")
		a := f.front.Judge(asks("GET", target))
		a.isRefused(t, 400, target)
		equal(t, target+": what a proxy that asks is told", string(a.Body), got.body)
	}
	equal(t, "requests at the origin", len(origin.take()), 0)
	for _, target := range []string{`/static/a?back=..\..`, "/static/%252e%252e/x", "/free/a%2fb", "/free;x"} {
		lacks(t, target, f.send("GET", target, "Host", "a").is(t, 200).text(), stateField)
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
		waits := f.send("GET", target, "Host", "a").Header.Get(stateField) == stateWaiting
		equal(t, target+" waits", waits, want)
		equal(t, target+" waits, as a proxy that asks is told", f.front.Judge(asks("GET", target)).Outcome == Queued, want)
	}
}

// TestOnlyHostsThatAreServed: what is asked for under another name is refused, of proxies
// that ask as well.
func TestOnlyHostsThatAreServed(t *testing.T) {
	origin := &recorder{}
	f := serve(t, fakeRooms{path: "/tickets", room: newRoom(letIn)}, origin, trustLoopback, func(c *Config) { c.Hosts = []string{"shop.example", "[::1]"} })
	for host, code := range map[string]int{
		"shop.example": 200, "SHOP.Example.:8080": 200, "[0::1]:80": 200,
		"www.shop.example": 421, "127.0.0.1": 421, "example": 421, "shop.example.evil": 421, "": 421,
	} {
		head := "OPTIONS /tickets HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"
		if host == "" {
			head = "GET /tickets HTTP/1.0\r\n\r\n"
		}
		answered(t, host, f.raw(head), code)
		equal(t, host+" reaches the origin", len(origin.take()) == 1, code == 200)
		if host == "" {
			continue
		}
		q := asks("GET", "/free")
		q.Host = host
		if a := f.front.Judge(q); code == 200 {
			a.is(t, Admitted, host)
		} else {
			a.isRefused(t, 421, host)
		}
	}
	// The name that counts is the one that the visitor asked for, before a proxy rewrote it.
	f.get("/free", "Host", "origin.internal", "X-Forwarded-Host", "shop.example").is(t, 200)
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
		code := 308
		if tt.to == "" {
			code = 400
		}
		equal(t, tt.method+" "+tt.target, f.send(tt.method, tt.target, "Host", "a").is(t, code).Header.Get("Location"), tt.to)
		if tt.target[0] == '/' {
			f.front.Judge(asks(tt.method, tt.target)).isRefused(t, 400, tt.method, tt.target)
		}
	}
}
