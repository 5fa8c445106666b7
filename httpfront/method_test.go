package httpfront

import (
	"net/http"
	"testing"
)

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
