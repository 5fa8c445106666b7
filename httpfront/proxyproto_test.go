package httpfront

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

const signature2 = "\r\n\r\n\x00\r\nQUIT\n"

// PROXY headers of version 2: from4 of 192.0.2.1:40000 to 198.51.100.2:443, fromTLS of who speaks TLS
// there, and local of the balancer itself. Package edge tests all others.
const (
	from4   = signature2 + "\x21\x11\x00\x0c" + ipv4
	fromTLS = signature2 + "\x21\x11\x00\x1e" + ipv4 + "\x20\x00\x0f\x01\x00\x00\x00\x00\x21\x00\x07TLSv1.3"
	local   = signature2 + "\x20\x00\x00\x00"
	ipv4    = "\xc0\x00\x02\x01\xc6\x33\x64\x02\x9c\x40\x01\xbb"
)

// proxied is a front whose visitors come through a balancer.
func proxied(t *testing.T, change ...func(*Config)) *front {
	t.Helper()
	return serve(t, nil, http.HandlerFunc(echo), append(change, behindBalancer)...)
}

const closing = "GET / HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n\r\n"

func TestTheVisitorIsWhoThePROXYHeaderNames(t *testing.T) {
	f := proxied(t)
	for name, c := range map[string]struct{ header, addr, proto string }{
		"v1":      {"PROXY TCP4 192.0.2.1 198.51.100.2 40000 443\r\n", "192.0.2.1", "http"},
		"v1 IPv6": {"PROXY TCP6 2001:db8::1 2001:db8::2 40000 443\r\n", "2001:db8::1", "http"},
		"v2 TLS":  {fromTLS, "192.0.2.1", "https"},
		"LOCAL":   {local, "127.0.0.1", "http"},
	} {
		answered(t, name, f.raw(c.header+closing), 200,
			"\nX-Forwarded-For: "+c.addr+"\n", "\nX-Real-Ip: "+c.addr+"\n", "\nX-Forwarded-Proto: "+c.proto+"\n")
	}
}

// TestAVisitorBehindPROXYMayBeAProxyItself has a balancer tell of a proxy that
// visitors come through.
func TestAVisitorBehindPROXYMayBeAProxyItself(t *testing.T) {
	f := proxied(t, trusts(prefixes("192.0.2.0/24")))
	has(t, "the origin", f.raw("PROXY TCP4 192.0.2.1 198.51.100.2 40000 443\r\n"+closing), "\nX-Real-Ip: 6.6.6.6\n", "\nX-Forwarded-Proto: https\n")
}

// unanswered fails the test unless a connection that begins like this ends without a word. A reset is an end, too.
func (f *front) unanswered(begins string) {
	f.tb.Helper()
	c := f.dial()
	io.WriteString(c, begins)
	if b, err := io.ReadAll(c); len(b) != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		f.tb.Errorf("%q: got %q, %v", begins, b, err)
	}
}

func TestWithoutAPROXYHeaderThereIsNoConnection(t *testing.T) {
	f := proxied(t)
	for _, raw := range []string{closing, "PROXY nonsense\r\n" + closing, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"} {
		f.unanswered(raw)
	}
}

func TestAPROXYHeaderFromAnybodyElseIsNone(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo), func(c *Config) { c.Edge.ProxyProtocol = prefixes("192.0.2.0/24") })
	for _, header := range []string{"PROXY TCP4 192.0.2.1 198.51.100.2 40000 443\r\n", from4} {
		if got := f.raw(header + closing); !strings.HasPrefix(got, "HTTP/1.1 4") && !strings.HasPrefix(got, "HTTP/1.1 5") {
			t.Errorf("got %q, want a refusal", got)
		}
	}
	answered(t, "without a header", f.raw(closing), 200)
}

func TestASlowPROXYHeaderIsCutOff(t *testing.T) {
	f := proxied(t, func(c *Config) { c.Timeouts.Head = 50 * time.Millisecond })
	for _, raw := range []string{"", "P", signature2, from4[:20]} {
		f.unanswered(raw)
	}
}

// TestTLSBehindAPROXYHeader has a balancer pass TLS through.
func TestTLSBehindAPROXYHeader(t *testing.T) {
	f := serveTLS(t, nil, behindBalancer)
	for _, pieces := range [][]string{
		{from4},
		{from4[:7], from4[7:20], from4[20:]},
	} {
		raw := f.dial()
		for _, p := range pieces {
			io.WriteString(raw, p)
		}
		c := f.secure(raw)
		io.WriteString(c, strings.Replace(closing, "X-Forwarded-Proto: https\r\n", "", 1))
		answered(t, "through TLS", rest(t, c), 200, "\nX-Real-Ip: 192.0.2.1\n", "\nX-Forwarded-Proto: https\n")
	}
}

// through opens a connection of a visitor whose address the PROXY header tells.
func (f *front) through(address string) *conn {
	c := f.dial()
	fmt.Fprintf(c, "PROXY TCP%d %s %[2]s 40000 80\r\n", map[bool]int{false: 4, true: 6}[strings.Contains(address, ":")], address)
	return c
}

// behindBalancer has visitors come through a balancer that tells their addresses.
func behindBalancer(c *Config) { c.Edge.ProxyProtocol = loopback }
