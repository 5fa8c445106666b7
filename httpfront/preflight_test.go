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
		fields string
		passes bool
	}{
		"a preflight":                 {origin + method, true},
		"with names of fields":        {origin + method + "Access-Control-Request-Headers: x-a\r\n", true},
		"with a length of nothing":    {origin + method + "Content-Length: 0\r\n", true},
		"of a page without a name":    {"Origin: null\r\n" + method, true},
		"no more than the method":     {"", false},
		"without a page":              {method, false},
		"without a method":            {origin, false},
		"of two pages":                {origin + origin + method, false},
		"for two methods":             {origin + method + method, false},
		"with a body":                 {origin + method + "Content-Length: 1\r\n", false},
		"with a body in chunks":       {origin + method + "Transfer-Encoding: chunked\r\n", false},
		"that wants another protocol": {origin + method + "Connection: Upgrade\r\nUpgrade: h2c\r\n", false},
	} {
		body := ""
		switch {
		case strings.Contains(c.fields, "Length: 1"):
			body = "x"
		case strings.Contains(c.fields, "chunked"):
			body = "1\r\nx\r\n0\r\n\r\n"
		}
		got := f.raw("OPTIONS /room HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + c.fields + "\r\n" + body)
		if passed := strings.Contains(got, "\r\n\r\nOPTIONS /room "); passed != c.passes || !passed && !strings.Contains(got, stateField+": waiting") {
			t.Errorf("%s: got %q", what, got)
		}
		if strings.Contains(c.fields, "h2c") {
			continue // a proxy that asks does not pass that on
		}
		var fields []string
		for line := range strings.SplitSeq(strings.TrimSuffix(c.fields, "\r\n"), "\r\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				fields = append(fields, name, value)
			}
		}
		if a := f.front.Judge(asks("OPTIONS", "/room", fields...)); (a.Outcome == Admitted) != c.passes {
			t.Errorf("%s: a proxy that asks is told %v", what, a.Outcome)
		}
	}
	if got := f.raw("OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + origin + method + "\r\n"); strings.Contains(got, stateField+": waiting") {
		t.Errorf("of no path, and so of no room: %q", got)
	}
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
	}), func(c *Config) { c.Limits.Upstream.Conns, c.Timeouts.Upstream.Wait = places, 200*time.Millisecond })
	var wg sync.WaitGroup
	codes := make(chan int, places)
	for range places {
		wg.Go(func() { codes <- f.do("OPTIONS", "/room", nil, asksFirst...).StatusCode })
	}
	for range places / 8 {
		<-asked
	}
	for range places - places/8 {
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Errorf("one more gets %d", code)
		}
	}
	for range 3 {
		if got := f.get("/room"); got.StatusCode != 200 {
			t.Errorf("a visitor meanwhile: %d", got.StatusCode)
		}
	}
	close(answer)
	wg.Wait()
	for range places / 8 {
		if code := <-codes; code != 200 {
			t.Errorf("the first get %d", code)
		}
	}
	if got := f.do("OPTIONS", "/room", nil, asksFirst...); got.StatusCode != 200 {
		t.Errorf("afterwards: %d", got.StatusCode)
	}
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
	}), func(c *Config) { c.Limits.Upstream.Conns, c.Timeouts.Upstream.Wait = places, 200*time.Millisecond })
	bodies, ends := io.Pipe()
	defer bodies.Close()
	var wg sync.WaitGroup
	codes := make(chan int, places)
	for range places {
		wg.Go(func() {
			codes <- f.do("POST", "/room/upload", io.MultiReader(strings.NewReader("x"), bodies)).StatusCode
		})
	}
	for range places / 2 {
		<-asked
	}
	for range places / 2 {
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Errorf("one more gets %d", code)
		}
	}
	for range 3 {
		if got := f.get("/room"); got.StatusCode != 200 {
			t.Errorf("a visitor meanwhile: %d", got.StatusCode)
		}
		if got := f.raw("POST /room HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("a form that has come meanwhile: %q", got)
		}
	}
	ends.Close()
	wg.Wait()
	for range places / 2 {
		if code := <-codes; code != 200 {
			t.Errorf("the first get %d", code)
		}
	}
	if got := f.do("POST", "/room", strings.NewReader("x")); got.StatusCode != 200 {
		t.Errorf("afterwards: %d", got.StatusCode)
	}
}

// Only what is a preflight at the origin as well passes a room.
func TestPreflightsArePreflightsAtTheOrigin(t *testing.T) {
	o := newRawOrigin(t, okAnswer)
	f := serveTo(t, fakeRooms{room: newRoom(never)}, o.url)
	got := f.raw("OPTIONS /tickets HTTP/1.1\r\nHost: a\r\nOrigin: https://b.example\r\nAccess-Control-Request-Method: GET\r\n" +
		"Connection: close, Origin, Access-Control-Request-Method\r\n\r\n")
	if head := o.head(); head != "" && !strings.Contains(head, "\r\nOrigin: ") {
		t.Errorf("the origin got %q, and the visitor %.60q", head, got)
	}
}

// A field without a value is none to what answers preflights at the site, which then passes the request on.
func TestFieldsWithoutAValueMakeNoPreflight(t *testing.T) {
	for _, fields := range []string{"Origin:\r\nAccess-Control-Request-Method: GET\r\n", "Origin: https://b.example\r\nAccess-Control-Request-Method:\r\n"} {
		o := newRawOrigin(t, okAnswer)
		f := serveTo(t, fakeRooms{room: newRoom(never)}, o.url)
		f.raw("OPTIONS /tickets HTTP/1.1\r\nHost: a\r\n" + fields + "Connection: close\r\n\r\n")
		if o.head() != "" {
			t.Errorf("%q passes the room", fields)
		}
	}
}
