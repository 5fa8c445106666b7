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
