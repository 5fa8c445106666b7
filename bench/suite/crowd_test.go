package suite

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestCrowdsComeInNumbers(t *testing.T) {
	var came atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "visitor", Value: fmt.Sprint(came.Add(1)), Path: "/"})
		fmt.Fprint(w, "wait")
	}))
	defer site.Close()
	address := strings.TrimPrefix(site.URL, "http://")
	for _, c := range []struct{ count, keep int }{{0, 0}, {1, 1}, {100, 7}, {1234, 1234}} {
		came.Store(0)
		cookies, err := crowd{address: address, visitor: head(""), count: c.count, keep: c.keep}.come(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		different := map[string]bool{}
		for _, cookie := range cookies {
			different[cookie] = strings.HasPrefix(cookie, "visitor=")
		}
		if int(came.Load()) != c.count || len(different) != c.keep {
			t.Errorf("of %d with %d cookies came %d with %d", c.count, c.keep, came.Load(), len(different))
		}
	}
}

func TestAnswersThatVisitorsCannotUse(t *testing.T) {
	for said, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nset-cookie: a=1; Path=/\r\ncontent-length: 2\r\n\r\nok": "a=1",
		"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n":               "error",
		"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\n\r\nok":                              "error",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok":                            "error",
		"": "error",
	} {
		got, err := readAnswer(bufio.NewReader(strings.NewReader(said)))
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", said, got, want)
		}
	}
}

func TestParseRedisBenchmark(t *testing.T) {
	got, err := parseRedisBenchmark(`"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"INCR","116279.07","0.289","0.056","0.263","0.503","0.615","0.639"
`)
	want := answers{rate: 116279.07, p50: 263 * time.Microsecond, p99: 615 * time.Microsecond}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := parseRedisBenchmark("Could not connect\n"); err == nil {
		t.Error("no figures are no error")
	}
}

func TestTextsForNginx(t *testing.T) {
	if got, want := nginxText(`a "b" \ $c`), `"a \"b\" \\ ${dollar}c"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
