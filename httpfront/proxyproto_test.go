package httpfront

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

const signature2 = "\r\n\r\n\x00\r\nQUIT\n"

// header2 is a PROXY header of version 2.
func header2(command, family byte, payload string) string {
	b := append([]byte(signature2), command, family)
	b = binary.BigEndian.AppendUint16(b, uint16(len(payload)))
	return string(b) + payload
}

// Addresses as version 2 has them: 192.0.2.1:40000 to 198.51.100.2:443, and
// [2001:db8::1]:40000 to [2001:db8::2]:443.
const (
	from4 = "\xc0\x00\x02\x01\xc6\x33\x64\x02\x9c\x40\x01\xbb"
	from6 = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x9c\x40\x01\xbb"
	fromMapped = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xc0\x00\x02\x01" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xc0\x00\x02\x02\x9c\x40\x01\xbb"

	local, proxy = 0x20, 0x21 // commands

	tlvTLS   = "\x20\x00\x0f\x01\x00\x00\x00\x00\x21\x00\x07TLSv1.3"
	tlvPlain = "\x20\x00\x05\x00\x00\x00\x00\x00"
	tlvAWS   = "\xea\x00\x04\x01vpc"
	tlvNoop  = "\x04\x00\x02\x00\x00"
)

var proxyHeaders = []struct {
	name, raw string
	want      proxyHeader
	ok        bool
}{
	{"v1 TCP4", "PROXY TCP4 192.0.2.1 198.51.100.2 40000 443\r\n", proxyHeader{visitor: netip.MustParseAddrPort("192.0.2.1:40000")}, true},
	{"v1 TCP6", "PROXY TCP6 2001:db8::1 2001:db8::2 40000 443\r\n", proxyHeader{visitor: netip.MustParseAddrPort("[2001:db8::1]:40000")}, true},
	{"v1 mapped", "PROXY TCP6 ::ffff:192.0.2.1 ::ffff:192.0.2.2 40000 443\r\n", proxyHeader{visitor: netip.MustParseAddrPort("192.0.2.1:40000")}, true},
	{"v1 UNKNOWN", "PROXY UNKNOWN\r\n", proxyHeader{}, true},
	{"v1 UNKNOWN with addresses", "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n", proxyHeader{}, true},
	{"v2 IPv4", header2(proxy, 0x11, from4), proxyHeader{visitor: netip.MustParseAddrPort("192.0.2.1:40000")}, true},
	{"v2 IPv6", header2(proxy, 0x21, from6), proxyHeader{visitor: netip.MustParseAddrPort("[2001:db8::1]:40000")}, true},
	{"v2 mapped", header2(proxy, 0x21, fromMapped), proxyHeader{visitor: netip.MustParseAddrPort("192.0.2.1:40000")}, true},
	{"v2 TLS", header2(proxy, 0x11, from4+tlvAWS+tlvNoop+tlvTLS), proxyHeader{visitor: netip.MustParseAddrPort("192.0.2.1:40000"), tls: true}, true},
	{"v2 without TLS", header2(proxy, 0x11, from4+tlvPlain), proxyHeader{visitor: netip.MustParseAddrPort("192.0.2.1:40000")}, true},
	{"v2 with a broken TLV", header2(proxy, 0x11, from4+"\x20\xff\xff\x01"), proxyHeader{visitor: netip.MustParseAddrPort("192.0.2.1:40000")}, true},
	{"v2 with much to skip", header2(proxy, 0x11, from4+"\x04\x0f\xa0"+strings.Repeat("x", 4000)), proxyHeader{visitor: netip.MustParseAddrPort("192.0.2.1:40000")}, true},
	{"v2 LOCAL", header2(local, 0x00, ""), proxyHeader{}, true},
	{"v2 LOCAL with addresses", header2(local, 0x11, from4+tlvTLS), proxyHeader{}, true},
	{"v2 LOCAL with a short block", header2(local, 0x11, "abc"), proxyHeader{}, true},
	{"v2 Unix", header2(proxy, 0x31, strings.Repeat("\x00", 216)), proxyHeader{}, true},

	{"nothing", "", proxyHeader{}, false},
	{"a request", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", proxyHeader{}, false},
	{"a handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", proxyHeader{}, false},
	{"v1 without CR", "PROXY TCP4 192.0.2.1 198.51.100.2 40000 443\n", proxyHeader{}, false},
	{"v1 with a port too many", "PROXY TCP4 192.0.2.1 198.51.100.2 40000 443 1\r\n", proxyHeader{}, false},
	{"v1 with a high port", "PROXY TCP4 192.0.2.1 198.51.100.2 65536 443\r\n", proxyHeader{}, false},
	{"v1 with a signed port", "PROXY TCP4 192.0.2.1 198.51.100.2 +1 443\r\n", proxyHeader{}, false},
	{"v1 with the wrong family", "PROXY TCP4 2001:db8::1 2001:db8::2 40000 443\r\n", proxyHeader{}, false},
	{"v1 with a name", "PROXY TCP4 localhost 198.51.100.2 40000 443\r\n", proxyHeader{}, false},
	{"v1 with UDP", "PROXY UDP4 192.0.2.1 198.51.100.2 40000 443\r\n", proxyHeader{}, false},
	{"v1 without end", "PROXY TCP4 " + strings.Repeat("1", 200), proxyHeader{}, false},
	{"v1 cut", "PROXY TCP4 192.0.2.1", proxyHeader{}, false},
	{"v1 in lower case", "proxy tcp4 192.0.2.1 198.51.100.2 40000 443\r\n", proxyHeader{}, false},
	{"v2 cut", signature2, proxyHeader{}, false},
	{"v2 cut in the addresses", header2(proxy, 0x11, from4)[:20], proxyHeader{}, false},
	{"v2 with short addresses", header2(proxy, 0x11, from4[:11]), proxyHeader{}, false},
	{"v2 IPv6 with those of IPv4", header2(proxy, 0x21, from4), proxyHeader{}, false},
	{"v2 UNSPEC", header2(proxy, 0x00, ""), proxyHeader{}, false},
	{"v2 UDP", header2(proxy, 0x12, from4), proxyHeader{}, false},
	{"v2 of another family", header2(proxy, 0x41, from4), proxyHeader{}, false},
	{"v2 with another command", header2(0x22, 0x11, from4), proxyHeader{}, false},
	{"v2 in version 3", header2(0x31, 0x11, from4), proxyHeader{}, false},
	{"v2 too long", header2(proxy, 0x11, from4+strings.Repeat("x", 5000)), proxyHeader{}, false},
}

func TestProxyHeaders(t *testing.T) {
	for _, c := range proxyHeaders {
		br := bufio.NewReaderSize(strings.NewReader(c.raw+"behind"), proxyHeaderMin)
		got, err := readProxyHeader(br)
		if (err == nil) != c.ok || got != c.want {
			t.Errorf("%s: got %+v, %v, want %+v, %v", c.name, got, err, c.want, c.ok)
		}
		if rest, _ := io.ReadAll(br); c.ok && string(rest) != "behind" {
			t.Errorf("%s: left %q, want what is behind", c.name, rest)
		}
	}
}

// FuzzProxyHeader holds that whatever is taken for a header is one, that nothing
// behind it is lost, and that it comes to the same when it is written anew.
func FuzzProxyHeader(f *testing.F) {
	for _, c := range proxyHeaders {
		f.Add([]byte(c.raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		const behind = "GET / HTTP/1.1\r\n\r\n"
		br := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(raw), strings.NewReader(behind)), proxyHeaderMin)
		got, err := readProxyHeader(br)
		if err != nil {
			if got != (proxyHeader{}) {
				t.Fatalf("%v comes with %+v", err, got)
			}
			return
		}
		rest, _ := io.ReadAll(br)
		length := len(raw) + len(behind) - len(rest)
		header := append(bytes.Clone(raw), behind...)[:length]
		switch {
		case bytes.HasPrefix(header, []byte("PROXY ")):
			if bytes.Index(header, []byte("\r\n")) != length-2 || length > 107 || got.tls {
				t.Fatalf("%q was taken for a header: %+v", header, got)
			}
		case bytes.HasPrefix(header, []byte(signature2)):
			if length != 16+int(binary.BigEndian.Uint16(header[14:])) {
				t.Fatalf("%q was taken for a header", header)
			}
		default:
			t.Fatalf("%q was taken for a header", header)
		}
		if !got.visitor.IsValid() {
			return
		}
		if got.visitor.Addr().Is4In6() || got.visitor.Addr().Zone() != "" {
			t.Fatalf("the address %v has another form", got.visitor)
		}
		family := proxyproto.TCPv4
		if got.visitor.Addr().Is6() {
			family = proxyproto.TCPv6
		}
		again := proxyproto.HeaderProxyFromAddrs(1, net.TCPAddrFromAddrPort(got.visitor), net.TCPAddrFromAddrPort(got.visitor))
		again.TransportProtocol = family
		b, err := again.Format()
		if err != nil {
			t.Fatal(err)
		}
		h, err := readProxyHeader(bufio.NewReaderSize(bytes.NewReader(b), proxyHeaderMin))
		if err != nil || h.visitor != got.visitor {
			t.Fatalf("%q gives %+v, %v, want %v", b, h, err, got.visitor)
		}
	})
}

// proxied is a front whose visitors come through a balancer.
func proxied(t *testing.T, change ...func(*Config)) *front {
	t.Helper()
	return serve(t, nil, http.HandlerFunc(echo), append(change, func(c *Config) { c.Edge.ProxyProtocol = loopback })...)
}

const closing = "GET / HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n\r\n"

func TestTheVisitorIsWhoThePROXYHeaderNames(t *testing.T) {
	f := proxied(t)
	for name, c := range map[string]struct{ header, addr, proto string }{
		"v1":        {"PROXY TCP4 192.0.2.1 198.51.100.2 40000 443\r\n", "192.0.2.1", "http"},
		"v1 IPv6":   {"PROXY TCP6 2001:db8::1 2001:db8::2 40000 443\r\n", "2001:db8::1", "http"},
		"v2":        {header2(proxy, 0x11, from4), "192.0.2.1", "http"},
		"v2 IPv6":   {header2(proxy, 0x21, from6), "2001:db8::1", "http"},
		"v2 TLS":    {header2(proxy, 0x11, from4+tlvTLS), "192.0.2.1", "https"},
		"LOCAL":     {header2(local, 0x00, ""), "127.0.0.1", "http"},
		"UNKNOWN":   {"PROXY UNKNOWN\r\n", "127.0.0.1", "http"},
		"LOCAL TLS": {header2(local, 0x11, from4+tlvTLS), "127.0.0.1", "http"},
	} {
		got := f.raw(c.header + closing)
		for _, want := range []string{"HTTP/1.1 200 ", "\nX-Forwarded-For: " + c.addr + "\n", "\nX-Real-Ip: " + c.addr + "\n", "\nX-Forwarded-Proto: " + c.proto + "\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	}
}

// TestAVisitorBehindPROXYMayBeAProxyItself has a balancer tell of a proxy that
// visitors come through.
func TestAVisitorBehindPROXYMayBeAProxyItself(t *testing.T) {
	f := proxied(t, func(c *Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} })
	got := f.raw("PROXY TCP4 192.0.2.1 198.51.100.2 40000 443\r\n" + closing)
	if !strings.Contains(got, "\nX-Real-Ip: 6.6.6.6\n") || !strings.Contains(got, "\nX-Forwarded-Proto: https\n") {
		t.Errorf("got %q", got)
	}
}

func TestWithoutAPROXYHeaderThereIsNoConnection(t *testing.T) {
	f := proxied(t)
	for _, raw := range []string{closing, "PROXY nonsense\r\n" + closing, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"} {
		c := f.dial()
		io.WriteString(c, raw)
		if b, _ := io.ReadAll(c); len(b) != 0 { // a reset is an end, too
			t.Errorf("%q: got %q", raw, b)
		}
	}
}

func TestAPROXYHeaderFromAnybodyElseIsNone(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo), func(c *Config) {
		c.Edge.ProxyProtocol = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	})
	for _, header := range []string{"PROXY TCP4 192.0.2.1 198.51.100.2 40000 443\r\n", header2(proxy, 0x11, from4)} {
		if got := f.raw(header + closing); !strings.HasPrefix(got, "HTTP/1.1 4") && !strings.HasPrefix(got, "HTTP/1.1 5") {
			t.Errorf("got %q, want a refusal", got)
		}
	}
	if got := f.raw(closing); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("without a header: got %q", got)
	}
}

func TestASlowPROXYHeaderIsCutOff(t *testing.T) {
	f := proxied(t, func(c *Config) { c.Timeouts.Head = 50 * time.Millisecond })
	for _, raw := range []string{"", "P", signature2, header2(proxy, 0x11, from4)[:20]} {
		c := f.dial()
		io.WriteString(c, raw)
		if b, err := io.ReadAll(c); len(b) != 0 || err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: got %q, %v", raw, b, err)
		}
	}
}

// TestTLSBehindAPROXYHeader has a balancer pass TLS through.
func TestTLSBehindAPROXYHeader(t *testing.T) {
	f := serveTLS(t, nil, func(c *Config) { c.Edge.ProxyProtocol = loopback })
	for _, pieces := range [][]string{
		{header2(proxy, 0x11, from4)},
		{header2(proxy, 0x11, from4)[:7], header2(proxy, 0x11, from4)[7:20], header2(proxy, 0x11, from4)[20:]},
	} {
		raw := f.dial()
		for _, p := range pieces {
			io.WriteString(raw, p)
		}
		config := f.client.Transport.(*http.Transport).TLSClientConfig.Clone()
		config.ServerName = "example.com"
		c := tls.Client(raw, config)
		if _, err := io.WriteString(c, strings.Replace(closing, "X-Forwarded-Proto: https\r\n", "", 1)); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(c)
		if err != nil || !strings.Contains(string(got), "\nX-Real-Ip: 192.0.2.1\n") || !strings.Contains(string(got), "\nX-Forwarded-Proto: https\n") {
			t.Errorf("got %q, %v", got, err)
		}
	}
}
