package httpfront

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// TestRunReportsABrokenListener: only one that is closed is broken.
func TestRunReportsABrokenListener(t *testing.T) {
	broken := loopbackListener(t)
	broken.Close()
	f := judges(t, fakeRooms{}, func(c *Config) { c.Listener, c.Origins = broken, origins(nowhere) })
	if err := f.Run(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want the listener's error", err)
	}
}

// secureFront is a front that speaks TLS.
type secureFront struct {
	*front
	client *http.Client
}

func serveTLS(t *testing.T, rooms Rooms, change ...func(*Config)) secureFront {
	t.Helper()
	cert := httptest.NewTLSServer(nil)
	t.Cleanup(cert.Close)
	f := serve(t, rooms, http.HandlerFunc(echo), append([]func(*Config){func(c *Config) {
		c.TLS = &tls.Config{Certificates: cert.TLS.Certificates}
	}}, change...)...)
	transport := cert.Client().Transport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	return secureFront{f, &http.Client{Transport: transport, Timeout: 10 * time.Second}}
}

// works checks that a visitor is served.
func (f secureFront) works() {
	f.tb.Helper()
	send(f.tb, f.client, "GET", "https://"+f.addr, nil).is(f.tb, 200)
}

// secure is a client's side of TLS on a connection.
func (f secureFront) secure(c net.Conn, change ...func(*tls.Config)) *tls.Conn {
	config := f.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName = "example.com"
	for _, change := range change {
		change(config)
	}
	return tls.Client(c, config)
}

// TestSilentClientsDoNotHoldUpOthers begins more handshakes than there is room
// for, none of which goes on.
func TestSilentClientsDoNotHoldUpOthers(t *testing.T) {
	f := serveTLS(t, nil, func(c *Config) { c.Limits.Handshakes, c.Limits.Conns = 2, 1 })
	var silent []net.Conn
	for range 10 {
		silent = append(silent, f.dial())
	}
	// The oldest make room. The last may be cut off by the visitor below.
	for i, c := range silent[:8] {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("silent connection %d: got bytes, want the end", i)
		}
	}
	f.works()
}

func TestClientsOverTheLimitAreToldWhy(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo), func(c *Config) { c.Limits.Conns = 2 })
	first, second := f.dial(), f.dial()
	for _, c := range []net.Conn{first, second} {
		io.WriteString(c, plainGet)
		c.Read(make([]byte, 1)) // it has its place
	}
	answered(t, "one too many", f.raw(plainGet), 503, "\r\nRetry-After: ", "\r\nRefresh: ",
		"There are too many connections to this server at the moment.</p><p>Please keep this page open. It reloads by itself.")
	first.Close()
	waitFor(t, "a place to become free", func() bool {
		return strings.HasPrefix(f.raw(lastGet), "HTTP/1.1 200 ")
	})
}

func TestTLSClientsOverTheLimitAreToldWhy(t *testing.T) {
	t.Parallel()
	f := serveTLS(t, nil, func(c *Config) { c.Limits.Conns = 1 })
	c := f.secure(f.dial())
	io.WriteString(c, plainGet)
	expect(t, c, "HTTP/1.1 200 ")
	answered(t, "one too many", rest(t, f.secure(f.dial())), 503, "reloads by itself")
	f.dial().ends() // who says nothing does not stay
}

func TestPlainRequestsToTLSAreToldSo(t *testing.T) {
	f := serveTLS(t, nil)
	answered(t, "a plain request", f.raw(plainGet), 400, "https://")
	lacks(t, "bytes that are neither", f.raw("\x00\x01\x02\x03\x04\x05\x06"), "HTTP")
	f.works()
}

// TestOneAddressCannotTakeAllConnections has visitors come through a balancer, so
// that they have addresses.
func TestOneAddressCannotTakeAllConnections(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo), behindBalancer, trusts(prefixes("10.9.0.0/16")), func(c *Config) { c.Limits.ConnsPerAddress = 2 })
	open := func(addr string) (*conn, int) {
		t.Helper()
		c := f.through(addr)
		io.WriteString(c, plainGet)
		return c, c.response("GET").StatusCode
	}
	for _, c := range []struct {
		name  string
		addrs []string // the last one is over the limit
		want  int
	}{
		{"IPv4", []string{"192.0.2.1", "192.0.2.1", "192.0.2.1"}, 429},
		{"IPv4 neighbour", []string{"192.0.2.2", "192.0.2.2", "192.0.2.3"}, 200},
		{"IPv6", []string{"2001:db8::1", "2001:db8::2", "2001:db8::ffff:1"}, 429},
		{"IPv6 neighbour", []string{"2001:db8:0:1::1", "2001:db8:0:1::1", "2001:db8:0:2::1"}, 200},
		{"IPv4 written as IPv6", []string{"::ffff:192.0.2.9", "192.0.2.9", "192.0.2.9"}, 429},
		{"trusted proxy", []string{"10.9.1.1", "10.9.1.1", "10.9.1.1"}, 200},
		{"loopback", []string{"127.0.0.1", "127.0.0.1", "127.0.0.1"}, 200},
	} {
		var conns [3]*conn
		for i, want := range []int{200, 200, c.want} {
			conn, got := open(c.addrs[i])
			equal(t, fmt.Sprintf("%s: connection %d", c.name, i+1), got, want)
			conns[i] = conn
		}
		conns[0].Close()
		waitFor(t, c.name+": a place to become free", func() bool {
			conn, got := open(c.addrs[0])
			conn.Close()
			return got == 200
		})
	}
}

// TestConnectionsEndAfterSoManyRequests has visitors of all kinds use up what one
// connection may bring.
func TestConnectionsEndAfterSoManyRequests(t *testing.T) {
	few := func(c *Config) { c.Limits.Requests = 3 }
	for name, f := range map[string]*front{
		"admitted": serve(t, nil, http.HandlerFunc(echo), few),
		"waiting":  serve(t, fakeRooms{room: newRoom(never)}, http.HandlerFunc(echo), few),
		"redirect": serveRedirect(t, few),
	} {
		c := f.dial()
		for i := range 3 {
			equal(t, fmt.Sprintf("%s: that the connection closes after request %d", name, i+1), c.ask("GET", plainGet).Close, i == 2)
		}
		c.ends()
	}
}

// TestWhoSendsMuchHearsThatTheyHaveToWait: if the connection were closed while the body comes,
// the client, or the proxy that it is, would lose the answer.
func TestWhoSendsMuchHearsThatTheyHaveToWait(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(never)}, http.HandlerFunc(echo), func(c *Config) { c.Limits.Body = 0 })
	const size, piece = 8 << 20, 64 << 10
	body := strings.Repeat("x", piece)
	for fields, part := range map[string]string{
		fmt.Sprintf("Content-Length: %d\r\n", size): body,
		"Transfer-Encoding: chunked\r\n":            fmt.Sprintf("%x\r\n%s\r\n", piece, body),
	} {
		c := f.dial()
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n")
		for range size / piece { // all of it before anything is read, as proxies do
			if _, err := io.WriteString(c, part); err != nil {
				t.Fatalf("%q: the body is cut off: %v", fields, err)
			}
		}
		expect(t, c, "HTTP/1.1 429 ")
		c.Close()
	}
}

const signature2 = "\r\n\r\n\x00\r\nQUIT\n"

// PROXY headers of version 2: from4 of 192.0.2.1:40000 to 198.51.100.2:443, fromTLS of who speaks TLS
// there, and local of the balancer itself. Package edge tests all others.
const (
	from4   = signature2 + "\x21\x11\x00\x0c" + ipv4
	fromTLS = signature2 + "\x21\x11\x00\x1e" + ipv4 + "\x20\x00\x0f\x01\x00\x00\x00\x00\x21\x00\x07TLSv1.3"
	local   = signature2 + "\x20\x00\x00\x00"
	ipv4    = "\xc0\x00\x02\x01\xc6\x33\x64\x02\x9c\x40\x01\xbb"
)

const closing = "GET / HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n\r\n"

func TestTheVisitorIsWhoThePROXYHeaderNames(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo), behindBalancer)
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
	f := serve(t, nil, http.HandlerFunc(echo), behindBalancer, trusts(prefixes("192.0.2.0/24")))
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
	f := serve(t, nil, http.HandlerFunc(echo), behindBalancer)
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
	f := serve(t, nil, http.HandlerFunc(echo), behindBalancer, func(c *Config) { c.Timeouts.Head = 50 * time.Millisecond })
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
