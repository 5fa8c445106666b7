package http1

import (
	"strings"
	"testing"
)

func TestMethods(t *testing.T) {
	for method, ok := range map[string]bool{
		"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "OPTIONS": true,
		"PROPFIND": true, "PROPPATCH": true, "MKCOL": true, "COPY": true, "MOVE": true, "LOCK": true, "UNLOCK": true,
		"REPORT": true, "SEARCH": true, "MKCALENDAR": true, "VERSION-CONTROL": true, "M-SEARCH": true, "QUERY": true, "X_1": true,
		strings.Repeat("A", methodMax): true,
		"":                             false, "get": false, "GEt": false, "CONNECT": false, "TRACE": false, "TRACK": false, "PRI": false,
		"A B": false, "A\r": false, "A:": false, "Ä": false, strings.Repeat("A", methodMax+1): false,
	} {
		if got := methodOf([]byte(method)); got != method && ok || (got != "") != ok {
			t.Errorf("%q: got %q, want it to be taken: %v", method, got, ok)
		}
	}
	for _, m := range []string{"GET", "OPTIONS", "PROPFIND", "REPORT"} {
		if n := testing.AllocsPerRun(10, func() { methodOf([]byte(m)) }); n != 0 {
			t.Errorf("%s: %v allocations", m, n)
		}
	}
}
