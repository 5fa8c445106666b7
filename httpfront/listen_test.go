package httpfront

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// fullListener has no descriptors left for its first connections.
type fullListener struct {
	net.Listener
	left atomic.Int32
}

func (l *fullListener) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

func TestRunningOutOfDescriptorsPasses(t *testing.T) {
	var full fullListener
	full.left.Store(3)
	f := serve(t, nil, http.HandlerFunc(echo), func(c *Config) {
		full.Listener = c.Listener
		c.Listener = &full
	})
	if got := f.get("/"); got.StatusCode != 200 {
		t.Errorf("got %d", got.StatusCode)
	}
	if n := full.left.Load(); n >= 0 {
		t.Errorf("%d failures to accept are still to come: the test shows nothing", n+1)
	}
}

// brokenListener cannot accept at all.
type brokenListener struct{ net.Listener }

func (brokenListener) Accept() (net.Conn, error) {
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EINVAL)}
}

func TestRunReportsABrokenListener(t *testing.T) {
	broken := Connections{Listener: brokenListener{loopbackListener(t)}}
	cfg := Config{Connections: broken, Rooms: fakeRooms{}, Keys: newKeys(t), Logger: testLogger(t)}
	cfg.Origins = origins(t, nowhere)
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context()); !errors.Is(err, syscall.EINVAL) {
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
	resp, err := f.client.Get("https://" + f.addr)
	if err != nil {
		f.tb.Fatal(err)
	}
	defer resp.Body.Close()
	if io.Copy(io.Discard, resp.Body); resp.StatusCode != 200 {
		f.tb.Errorf("got %d", resp.StatusCode)
	}
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
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		c.Read(make([]byte, 1)) // it has its place
	}
	got := f.raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 503 ") || !strings.Contains(got, "\r\nRetry-After: ") || !strings.Contains(got, "\r\nRefresh: ") || !strings.Contains(got, "There are too many connections to this server at the moment. This page tries again by itself.") {
		t.Errorf("got %q", got)
	}
	first.Close()
	waitFor(t, "a place to become free", func() bool {
		return strings.HasPrefix(f.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), "HTTP/1.1 200 ")
	})
}

func TestTLSClientsOverTheLimitAreToldWhy(t *testing.T) {
	t.Parallel()
	f := serveTLS(t, nil, func(c *Config) { c.Limits.Conns = 1 })
	c, err := tls.Dial("tcp", f.addr, f.client.Transport.(*http.Transport).TLSClientConfig.Clone())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	c.Read(make([]byte, 1))
	over, err := tls.Dial("tcp", f.addr, f.client.Transport.(*http.Transport).TLSClientConfig.Clone())
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	if got, err := io.ReadAll(over); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 503 ") || !strings.Contains(string(got), "tries again by itself") {
		t.Errorf("got %q, %v", got, err)
	}
	// Who says nothing does not stay.
	if _, err := f.dial().Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
}

func TestPlainRequestsToTLSAreToldSo(t *testing.T) {
	f := serveTLS(t, nil)
	if got := f.raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.Contains(got, "https://") {
		t.Errorf("got %q", got)
	}
	if got := f.raw("\x00\x01\x02\x03\x04\x05\x06"); strings.Contains(got, "HTTP") {
		t.Errorf("bytes that are neither: got %q", got)
	}
	f.works()
}

// TestOneAddressCannotTakeAllConnections has visitors come through a balancer, so
// that they have addresses.
func TestOneAddressCannotTakeAllConnections(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo), func(c *Config) {
		c.Edge.ProxyProtocol = loopback
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}
		c.Limits.ConnsPerAddress = 2
	})
	open := func(addr string) (net.Conn, string) {
		t.Helper()
		c := f.dial()
		family := "TCP4"
		if strings.Contains(addr, ":") {
			family = "TCP6"
		}
		fmt.Fprintf(c, "PROXY %s %s %s 40000 80\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", family, addr, addr)
		line := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(c, line); err != nil {
			t.Fatal(err)
		}
		return c, string(line[len("HTTP/1.1 "):])
	}
	for _, c := range []struct {
		name  string
		addrs []string // the last one is over the limit
		want  string
	}{
		{"IPv4", []string{"192.0.2.1", "192.0.2.1", "192.0.2.1"}, "429"},
		{"IPv4 neighbour", []string{"192.0.2.2", "192.0.2.2", "192.0.2.3"}, "200"},
		{"IPv6", []string{"2001:db8::1", "2001:db8::2", "2001:db8::ffff:1"}, "429"},
		{"IPv6 neighbour", []string{"2001:db8:0:1::1", "2001:db8:0:1::1", "2001:db8:0:2::1"}, "200"},
		{"IPv4 written as IPv6", []string{"::ffff:192.0.2.9", "192.0.2.9", "192.0.2.9"}, "429"},
		{"trusted proxy", []string{"10.9.1.1", "10.9.1.1", "10.9.1.1"}, "200"},
		{"loopback", []string{"127.0.0.1", "127.0.0.1", "127.0.0.1"}, "200"},
	} {
		var first net.Conn
		for i, addr := range c.addrs {
			conn, got := open(addr)
			defer conn.Close()
			if i == 0 {
				first = conn
			}
			want := "200"
			if i == len(c.addrs)-1 {
				want = c.want
			}
			if got != want {
				t.Errorf("%s: connection %d: got %s, want %s", c.name, i+1, got, want)
			}
		}
		first.Close()
		waitFor(t, c.name+": a place to become free", func() bool {
			conn, got := open(c.addrs[0])
			conn.Close()
			return got == "200"
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
			if resp := c.ask("GET", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); resp.Close != (i == 2) {
				t.Errorf("%s: request %d: close %v", name, i+1, resp.Close)
			}
		}
		if _, err := c.br.ReadByte(); err != io.EOF {
			t.Errorf("%s: got %v, want the end", name, err)
		}
	}
}

// TestWhoSendsMuchHearsThatTheyHaveToWait: if the connection were closed while the body comes,
// the client, or the proxy that it is, would lose the answer.
func TestWhoSendsMuchHearsThatTheyHaveToWait(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(never)}, http.HandlerFunc(echo), func(c *Config) { c.Limits.Body = 0 })
	for _, expect := range []string{"", "Transfer-Encoding: chunked\r\n"} {
		c := f.dial()
		const size, piece = 8 << 20, 64 << 10
		head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", size)
		if expect != "" {
			head = "POST / HTTP/1.1\r\nHost: a\r\n" + expect + "\r\n"
		}
		io.WriteString(c, head)
		body := strings.Repeat("x", piece)
		if expect != "" {
			body = fmt.Sprintf("%x\r\n%s\r\n", piece, body)
		}
		for range size / piece { // all of it before anything is read, as proxies do
			if _, err := io.WriteString(c, body); err != nil {
				t.Fatalf("%q: the body is cut off: %v", expect, err)
			}
		}
		got, err := c.br.ReadString('\n')
		if err != nil || !strings.HasPrefix(got, "HTTP/1.1 429 ") {
			t.Errorf("%q: got %q, %v", expect, got, err)
		}
		c.Close()
	}
}
