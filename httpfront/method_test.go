package httpfront

import (
	"net/http"
	"strings"
	"testing"
)

func TestOnlyMethodsThatAreAllowed(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo), func(c *Config) { c.Methods = []string{"GET", "PROPFIND"} })
	for method, want := range map[string]int{"GET": 200, "PROPFIND": 200, "POST": 501, "OPTIONS": 501} {
		if got := f.do(method, "/", nil); got.StatusCode != want {
			t.Errorf("%s: got %d, want %d", method, got.StatusCode, want)
		}
	}
	_, err := New(Config{Connections: Connections{Listen: ":0"}, Upstreams: Upstreams{Origins: origins(t, "http://a")}, Rooms: fakeRooms{}, Keys: newKeys(t), Methods: []string{"get", "TRACE"}})
	if err == nil || !strings.Contains(err.Error(), `method "get": want up to 32 upper-case letters`) || !strings.Contains(err.Error(), `method "TRACE"`) {
		t.Errorf("error is %v", err)
	}
}

// TestUnknownMethodsWait: nobody gets around a room by a method.
func TestUnknownMethodsWait(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(never)}, http.HandlerFunc(echo))
	for _, method := range []string{"PROPFIND", "LOCK", "BREW"} {
		if got := f.do(method, "/", nil); got.StatusCode != http.StatusTooManyRequests || got.Header.Get(stateField) != "waiting" {
			t.Errorf("%s: got %d %v", method, got.StatusCode, got.Header)
		}
	}
}

func TestOptions(t *testing.T) {
	o := newRawOrigin(t, "HTTP/1.1 204 No Content\r\nAllow: GET, PROPFIND\r\n\r\n")
	f := serveTo(t, fakeRooms{room: newRoom(letIn)}, o.url)
	for target, want := range map[string]string{
		"*": "OPTIONS * ", "http://a": "OPTIONS * ", "http://a/": "OPTIONS / ", "http://a?x": "OPTIONS /?x ", "/x": "OPTIONS /x ",
	} {
		got := f.raw("OPTIONS " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 204 ") || !strings.Contains(got, "\r\nAllow: GET, PROPFIND\r\n") || !strings.HasPrefix(o.head(), want) {
			t.Errorf("%s: the origin got %q, the client %q", target, o.head(), got)
		}
	}
}
