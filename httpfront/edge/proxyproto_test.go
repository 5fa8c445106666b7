package edge

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/pires/go-proxyproto"

	"github.com/ropeline/ropeline/bench/must"
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
		rest, _ := io.ReadAll(br)
		if (err == nil) != c.ok || got != c.want || c.ok && string(rest) != "behind" {
			t.Errorf("%s: got %+v, %v and %q, want %+v, %v and what is behind", c.name, got, err, rest, c.want, c.ok)
		}
	}
}

// FuzzProxyHeader holds that whatever is taken for a header is one, that nothing
// behind it is lost, and that it comes to the same when it is written again.
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
		address := net.TCPAddrFromAddrPort(got.visitor)
		b := must.Do(proxyproto.HeaderProxyFromAddrs(1, address, address).Format())
		h, err := readProxyHeader(bufio.NewReaderSize(bytes.NewReader(b), proxyHeaderMin))
		if a := got.visitor.Addr(); a.Is4In6() || a.Zone() != "" || err != nil || h.visitor != got.visitor {
			t.Fatalf("%q gives %+v, %v, want %v, in the form of the protocol", b, h, err, got.visitor)
		}
	})
}
