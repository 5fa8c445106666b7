package suite

import (
	"testing"
	"time"
)

func TestParseWrk(t *testing.T) {
	got, err := parseWrk(`Running 1s test @ http://127.0.0.1:1/
  1 threads and 64 connections
  Latency Distribution
     50%  850.00us
     75%    1.10ms
     90%    1.50ms
     99%    2.24ms
  70093 requests in 1.10s, 12.30MB read
  Socket errors: connect 0, read 3, write 0, timeout 4
  Non-2xx or 3xx responses: 12
Requests/sec:  63721.20
`)
	want := answers{rate: 63721.20, p50: 850 * time.Microsecond, p99: 2240 * time.Microsecond, answered: 70093, bad: 12, failed: 7}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestLuaHasHeadsAsTheyAre(t *testing.T) {
	const want = "local heads = {\n\"GET / HTTP/1.1\\r\\n\\r\\n\",\n}\nlocal i, n = 0, #heads\nfunction request() i = i % n + 1 return heads[i] end\n"
	if got := string(luaOf([][]byte{[]byte("GET / HTTP/1.1\r\n\r\n")})); got != want {
		t.Errorf("got %s", got)
	}
}
