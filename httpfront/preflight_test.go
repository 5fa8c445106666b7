package httpfront

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestOnlyPreflightsPassARoom: anybody can send OPTIONS, and many sites answer it as GET.
func TestOnlyPreflightsPassARoom(t *testing.T) {
	const origin, method = "Origin: https://other.example\r\n", "Access-Control-Request-Method: PUT\r\n"
	f := serve(t, fakeRooms{"/room", newRoom(never)}, http.HandlerFunc(echo), trustLoopback)
	for what, c := range map[string]struct {
		fields, body string
		passes       bool
	}{
		"a preflight":                 {origin + method, "", true},
		"with names of fields":        {origin + method + "Access-Control-Request-Headers: x-a\r\n", "", true},
		"with a length of nothing":    {origin + method + "Content-Length: 0\r\n", "", true},
		"of a page without a name":    {"Origin: null\r\n" + method, "", true},
		"no more than the method":     {"", "", false},
		"without a page":              {method, "", false},
		"without a method":            {origin, "", false},
		"of two pages":                {origin + origin + method, "", false},
		"for two methods":             {origin + method + method, "", false},
		"with a body":                 {origin + method + "Content-Length: 1\r\n", "x", false},
		"with a body in chunks":       {origin + method + "Transfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\n\r\n", false},
		"that wants another protocol": {origin + method + "Connection: Upgrade\r\nUpgrade: h2c\r\n", "", false},
	} {
		got := f.raw("OPTIONS /room HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + c.fields + "\r\n" + c.body)
		if c.passes {
			has(t, what, got, "HTTP/1.1 200 OK\r\n", "\r\nContent-Length: 0\r\n")
			lacks(t, what, got, stateField+": ", "OPTIONS /room")
		} else {
			has(t, what, got, stateField+": waiting")
		}
		if strings.Contains(c.fields, "h2c") {
			continue // a proxy that asks does not pass that on
		}
		var fields []string
		for line := range strings.Lines(c.fields) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			fields = append(fields, name, value)
		}
		passes := f.front.Judge(asks("OPTIONS", "/room", fields...)).Outcome == Admitted
		equal(t, what+" passes, as a proxy that asks is told", passes, c.passes)
	}
	has(t, "where no room is", f.raw("OPTIONS /free HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+origin+method+"\r\n"), "\r\n\r\nOPTIONS /free ")
	// Of no path, and so of no room.
	lacks(t, "*", f.raw("OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+origin+method+"\r\n"), stateField+": waiting")
}

// takeNoMore has as many requests of one kind come as there are places at the origin, which tells of each, and of which
// they may take a part. Those beyond it are turned away, and visitors served meanwhile.
func takeNoMore(t *testing.T, f *front, places, part int, asked <-chan struct{}, request func() int, meanwhile, end func()) {
	t.Helper()
	var wg sync.WaitGroup
	codes := make(chan int, places)
	for range places {
		wg.Go(func() { codes <- request() })
	}
	for range part {
		<-asked
	}
	for range places - part {
		equal(t, "one more", <-codes, http.StatusServiceUnavailable)
	}
	for range 3 {
		f.get("/room").is(t, 200)
		meanwhile()
	}
	end()
	wg.Wait()
	for range part {
		equal(t, "the first", <-codes, 200)
	}
}

// fewPlaces has an origin take so many requests at once.
func fewPlaces(places int) func(*Config) {
	return func(c *Config) { c.Limits.Upstream.Conns, c.Timeouts.Upstream.Wait = places, 200*time.Millisecond }
}

// TestPreflightsTakeNoPlacesFromVisitors, though nothing but their number holds them.
func TestPreflightsTakeNoPlacesFromVisitors(t *testing.T) {
	const places = 16
	answer, asked := make(chan struct{}), make(chan struct{}, places)
	f := serve(t, fakeRooms{"/room", newRoom(letIn)}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			asked <- struct{}{}
			<-answer
		}
		echo(w, r)
	}), fewPlaces(places))
	preflight := func() int { return f.do("OPTIONS", "/room", nil, asksFirst...).StatusCode }
	takeNoMore(t, f, places, places/8, asked, preflight, func() {}, func() { close(answer) })
	equal(t, "afterwards", preflight(), 200)
}

// TestUploadsTakeHalfOfThePlaces: how fast a body comes is up to its client. One that has come already is no upload.
func TestUploadsTakeHalfOfThePlaces(t *testing.T) {
	const places = 8
	asked := make(chan struct{}, places)
	f := serve(t, fakeRooms{"/room", newRoom(letIn)}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/room/upload" {
			asked <- struct{}{}
		}
		echo(w, r)
	}), fewPlaces(places))
	bodies, ends := io.Pipe()
	defer bodies.Close()
	upload := func() int {
		return f.do("POST", "/room/upload", io.MultiReader(strings.NewReader("x"), bodies)).StatusCode
	}
	form := func() {
		got := f.raw("POST /room HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx")
		answered(t, "a form that has come meanwhile", got, 200)
	}
	takeNoMore(t, f, places, places/2, asked, upload, form, func() { ends.Close() })
	f.do("POST", "/room", strings.NewReader("x")).is(t, 200)
}

// Only what is a preflight at the origin as well passes a room.
func TestPreflightsArePreflightsAtTheOrigin(t *testing.T) {
	o, f := serveRaw(t, fakeRooms{room: newRoom(never)}, okAnswer)
	got := f.raw("OPTIONS /tickets HTTP/1.1\r\nHost: a\r\nOrigin: https://b.example\r\nAccess-Control-Request-Method: GET\r\n" +
		"Connection: close, Origin, Access-Control-Request-Method\r\n\r\n")
	if head := o.head(); head != "" && !strings.Contains(head, "\r\nOrigin: ") {
		t.Errorf("the origin got %q, and the visitor %.60q", head, got)
	}
}

// A field without a value is none to what answers preflights at the site, which then passes the request on.
func TestFieldsWithoutAValueMakeNoPreflight(t *testing.T) {
	for _, fields := range []string{"Origin:\r\nAccess-Control-Request-Method: GET\r\n", "Origin: https://b.example\r\nAccess-Control-Request-Method:\r\n"} {
		o, f := serveRaw(t, fakeRooms{room: newRoom(never)}, okAnswer)
		f.raw("OPTIONS /tickets HTTP/1.1\r\nHost: a\r\n" + fields + "Connection: close\r\n\r\n")
		equal(t, "what passes the room with "+fields, o.head(), "")
	}
}

func TestOnlyMethodsThatAreAllowed(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo), func(c *Config) { c.Methods = []string{"GET", "PROPFIND"} })
	for method, want := range map[string]int{"GET": 200, "PROPFIND": 200, "POST": 501, "OPTIONS": 501} {
		f.do(method, "/", nil).is(t, want)
	}
}

func TestOptions(t *testing.T) {
	o, f := serveRaw(t, fakeRooms{room: newRoom(letIn)}, "HTTP/1.1 204 No Content\r\nAllow: GET, PROPFIND\r\n\r\n")
	for target, want := range map[string]string{
		"*": "OPTIONS * ", "http://a": "OPTIONS * ", "http://a/": "OPTIONS / ", "http://a?x": "OPTIONS /?x ", "/x": "OPTIONS /x ",
	} {
		f.send("OPTIONS", target, "Host", "a").is(t, 204, "\r\nAllow: GET, PROPFIND\r\n")
		has(t, target+" at the origin", "\n"+o.head(), "\n"+want)
	}
}
