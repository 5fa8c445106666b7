package httpfront

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/httpfront/http1"
)

// TestALoopEndsAtOnce has a front whose origin is a front whose origin is the
// first.
func TestALoopEndsAtOnce(t *testing.T) {
	var log lockedLog
	var second *front
	first := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Stands for a balancer between the two.
		req := r.Clone(r.Context())
		req.RequestURI, req.URL.Scheme, req.URL.Host = "", "http", second.addr
		resp, err := second.client.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		fmt.Fprint(w, resp.Header.Get("X-Request-Id"))
	}), func(c *Config) { c.Logger = log.logger() })
	second = serveTo(t, nil, "http://"+first.addr)
	got := second.get("/")
	if got.StatusCode != http.StatusLoopDetected {
		t.Errorf("got %d %q", got.StatusCode, got.body)
	}
	if n := first.front.Origins()[0].Origins[0].Requests; n != 1 {
		t.Errorf("the first front sent %d requests, want 1", n)
	}
	// It was the second that noticed: it saw its own name.
	if log.has("leads back") {
		t.Errorf("the first front says %s", log.text())
	}
}

func TestPassedNodes(t *testing.T) {
	const self, other = "00000000000000aa", "00000000000000bb"
	for field, want := range map[string]bool{
		"":                                   false,
		other:                                false,
		self:                                 true,
		other + ", " + self:                  true,
		self + "0":                           false,
		strings.Repeat(other+",", hopsMax-1): false,
		strings.Repeat(other+",", hopsMax):   true,
	} {
		r := &request{Request: http1.Request{Loop: []byte(field)}}
		if got := r.hasPassed(self); got != want {
			t.Errorf("%q: got %v, want %v", field, got, want)
		}
	}
	r := &request{Request: http1.Request{Loop: []byte("evil\", " + other + " ,x, " + strings.ToUpper(other))}}
	if got := string(r.appendLoop(nil, self)); got != "Ropeline-Via: "+other+", "+strings.ToUpper(other)+", "+self+"\r\n" {
		t.Errorf("got %q", got)
	}
}

func TestViaOfOthersIsPassedOn(t *testing.T) {
	o := newRawOrigin(t, okAnswer)
	f := serveTo(t, nil, o.url)
	f.raw("GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 cdn\r\nConnection: close\r\n\r\n")
	if !strings.Contains(o.head(), "\r\nVia: 1.1 cdn\r\n") || strings.Count(o.head(), "Ropeline-Via: ") != 1 {
		t.Errorf("the origin got %q", o.head())
	}
}
