package httpfront

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/upstream"
)

// TestAnswersOfNoUseEjectNobody: an origin that answers is there, also if its answer
// cannot be passed on, and one that does not is not.
func TestAnswersOfNoUseEjectNobody(t *testing.T) {
	for name, c := range map[string]struct {
		says    string
		ejected bool
	}{
		"a long head":        {"HTTP/1.1 302 Found\r\nLocation: /?" + strings.Repeat("a", bufferSize) + "\r\n\r\n", false},
		"a name of a field":  {"HTTP/1.1 200 OK\r\nX Y\r\nContent-Length: 2\r\n\r\nok", false},
		"a status":           {"HTTP/1.1 abc OK\r\nContent-Length: 2\r\n\r\nok", false},
		"two lengths":        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3x\r\n\r\nok", false},
		"interims for ever":  {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 50), false},
		"after an interim":   {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 xyz\r\n\r\n", false},
		"101 unasked":        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", false},
		"nothing":            {"", true},
		"half a head":        {"HTTP/1.1 200 OK\r\nX: ", true},
		"an interim at most": {"HTTP/1.1 103 Early Hints\r\n\r\n", true},
		"not HTTP":           {"220 mail.example ESMTP\r\n\r\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := serveTo(t, nil, tcpOrigin(t, func(conn net.Conn, br *bufio.Reader) {
				if _, err := http.ReadRequest(br); err == nil {
					io.WriteString(conn, c.says)
				}
			}), func(c *Config) {
				c.Passive = upstream.Passive{Failures: 2, Ejection: time.Hour, EjectionMax: time.Hour}
			})
			for range 3 {
				if got := f.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); !strings.Contains(got, "HTTP/1.1 502 ") {
					t.Fatalf("got %.300q", got)
				}
			}
			if s := f.front.Origins()[0].Origins[0]; (s.State == "ejected") != c.ejected {
				t.Errorf("the origin is %q after %d failures: %s", s.State, s.Failures, s.Reason)
			}
		})
	}
}
