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
	second.get("/").is(t, http.StatusLoopDetected)
	equal(t, "requests that the first front sent", first.front.Origins()[0].Origins[0].Requests, 1)
	lacks(t, "the first front, although it was the second that saw its own name", log.text(), "leads back")
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
		equal(t, field, r.hasPassed(self), want)
	}
	r := &request{Request: http1.Request{Loop: []byte("evil\", " + other + " ,x, " + strings.ToUpper(other))}}
	equal(t, "the field", string(r.appendLoop(nil, self)), "Ropeline-Via: "+other+", "+strings.ToUpper(other)+", "+self+"\r\n")
}

func TestViaOfOthersIsPassedOn(t *testing.T) {
	o, f := serveRaw(t, nil, okAnswer)
	f.send("GET", "/", "Host", "a", "Via", "1.1 cdn")
	has(t, "the origin", o.head(), "\r\nVia: 1.1 cdn\r\n")
	equal(t, "names of nodes at the origin", strings.Count(o.head(), "Ropeline-Via: "), 1)
}
