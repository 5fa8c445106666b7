package visitor

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/httpfront/http1"
)

var trusting = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}

// heard is what came of the fields that a trusted proxy has sent.
type heard struct{ client, chain, forwarded, proto, host, port string }

// hear reads fields, one a line, as they come from peer, and returns what is told
// to the origin.
func hear(tb testing.TB, peer, by string, fields ...string) (heard, http1.Refusal) {
	tb.Helper()
	var r http1.Request
	var s Sender
	head := "Host: inner.example\r\n" + strings.Join(append(fields, ""), "\r\n") + "\r\n"
	no := r.Parse(http1.RawHead{Method: []byte("GET"), Target: []byte("/"), Protocol: []byte("HTTP/1.1"), Fields: []byte(head)})
	if no.Code == 0 {
		no = s.Locate(&r, netip.MustParseAddr(peer), false, &Trust{Proxies: trusting, Field: strings.ToLower(by)})
	}
	if no.Code != 0 {
		return heard{}, no
	}
	out, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(append(s.AppendFields([]byte("GET / HTTP/1.1\r\n"), r.HostField), "\r\n"...))))
	if err != nil {
		tb.Fatal(err)
	}
	h := out.Header
	got := heard{h.Get("X-Real-IP"), h.Get("X-Forwarded-For"), h.Get("Forwarded"), h.Get("X-Forwarded-Proto"), h.Get("X-Forwarded-Host"), h.Get("X-Forwarded-Port")}
	if got.client != s.Client.String() {
		tb.Fatalf("X-Real-IP is %s, and the visitor %v", got.client, s.Client)
	}
	for name, v := range h {
		if len(v) != 1 {
			tb.Fatalf("%s stands there %d times", name, len(v))
		}
	}
	return got, http1.Refusal{}
}

// told is what an origin is told of a visitor who has come by a chain of proxies, and has asked for a site.
func told(chain, site string) heard {
	u, _ := url.Parse(site)
	hops := strings.Split(chain, ", ")
	var forwarded []string
	for _, hop := range hops {
		if strings.Contains(hop, ":") {
			hop = `"[` + hop + `]"`
		}
		forwarded = append(forwarded, "for="+hop)
	}
	forwarded[0] += fmt.Sprintf(";proto=%s;host=%q", u.Scheme, u.Host)
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return heard{hops[0], chain, strings.Join(forwarded, ", "), u.Scheme, u.Host, port}
}

// TestWhoTheVisitorIs has requests come from the last one of each chain, and asks for http://inner.example but where it says
// otherwise.
func TestWhoTheVisitorIs(t *testing.T) {
	for _, c := range []struct {
		name, by, chain, site string
		fields                []string
	}{
		{
			"nobody is believed", "X-Forwarded-For", "192.0.2.1", "",
			[]string{"X-Forwarded-For: 6.6.6.6", "Forwarded: for=6.6.6.6", "X-Real-IP: 6.6.6.6", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example", "X-Forwarded-Port: 1"},
		},
		{"IPv6 without a proxy", "X-Forwarded-For", "2001:db8::7", "", nil},
		{"the proxy's own request", "X-Forwarded-For", "10.0.0.1", "", nil},
		{"a visitor's spoof is left out", "X-Forwarded-For", "198.51.100.9, 10.0.0.1", "", []string{"X-Forwarded-For: 6.6.6.6, 127.0.0.1, 198.51.100.9"}},
		{
			"proxies behind proxies, in several fields", "X-Forwarded-For", "2001:db8::9, fd00::2, 10.1.1.1, 10.0.0.1", "",
			[]string{"X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 2001:db8::9 ,, fd00::2", "X-Forwarded-For:10.1.1.1"},
		},
		{
			"ports and brackets", "X-Forwarded-For", "2001:db8::9, 10.1.1.1, fd00::2, 10.0.0.1", "",
			[]string{"X-Forwarded-For: [2001:db8::9]:4711, 10.1.1.1:80, [fd00::2]"},
		},
		{"IPv4 in IPv6, and zones", "X-Forwarded-For", "192.0.2.9, 10.1.1.1, 10.0.0.1", "", []string{"X-Forwarded-For: ::ffff:192.0.2.9%eth0, ::ffff:10.1.1.1"}},
		{"a visitor who hides", "X-Forwarded-For", "10.1.1.1, 10.0.0.1", "", []string{"X-Forwarded-For: 6.6.6.6, unknown, 10.1.1.1"}},
		{
			"what the visitor asked for", "X-Forwarded-For", "192.0.2.9, 10.0.0.1", "https://shop.example:8443",
			[]string{"X-Forwarded-For: 192.0.2.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: shop.example:8443"},
		},
		{
			"values passed on by the nearest proxy", "X-Forwarded-For", "192.0.2.9, 10.1.1.1, 10.0.0.1", "https://inner.example",
			[]string{"X-Forwarded-For: 192.0.2.9, 10.1.1.1", "X-Forwarded-Proto: wss", "X-Forwarded-Port: 443"},
		},
		{
			"a colon without a port", "X-Forwarded-For", "192.0.2.9, 10.0.0.1", "https://shop.example:",
			[]string{"X-Forwarded-For: 192.0.2.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: shop.example:"},
		},
		{
			"nonsense is not believed", "X-Forwarded-For", "192.0.2.9, 10.0.0.1", "",
			[]string{"X-Forwarded-For: 192.0.2.9", "X-Forwarded-Proto: gopher", "X-Forwarded-Host: a b", "X-Forwarded-Port: 080"},
		},
		{"another field is not the one", "X-Forwarded-For", "10.0.0.1", "", []string{"Forwarded: for=6.6.6.6;proto=https", "X-Real-IP: 6.6.6.6"}},
		{
			"X-Real-IP", "X-Real-IP", "192.0.2.9, 10.0.0.1", "https://inner.example",
			[]string{"X-Real-IP: 192.0.2.9", "X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: https"},
		},
		{"a field of its own that names a trusted address", "X-Visitor", "10.9.9.9, 10.0.0.1", "", []string{"X-Visitor: 6.6.6.6, 10.9.9.9"}},
		{
			"Forwarded", "Forwarded", "192.0.2.9, 10.0.0.1", "https://shop.example:8443",
			[]string{`Forwarded: for=6.6.6.6;proto=http, For="192.0.2.9:4711";Proto=https;HOST="shop.example:8443";by=_lb`, "X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: http"},
		},
		{
			"Forwarded with IPv6, in several fields", "Forwarded", "2001:db8::9, fd00::2, 10.1.1.1, 10.0.0.1", "https://inner.example",
			[]string{`Forwarded: for="[2001:db8::9]:4711" ; proto=https`, `Forwarded: ,for="[fd00::2]";proto=http , for=10.1.1.1`},
		},
		{
			"Forwarded without quotes", "Forwarded", "2001:db8::9, 10.0.0.1", "http://shop.example:8443",
			[]string{"Forwarded: for=[2001:db8::9]:80;host=shop.example:8443"},
		},
		{
			"Forwarded with hidden names", "Forwarded", "10.1.1.1, 10.0.0.1", "https://inner.example",
			[]string{`Forwarded: for=6.6.6.6, for=_visitor;proto=https, for="10.1.1.1:_port"`},
		},
		{"Forwarded with commas in quotes", "Forwarded", "192.0.2.9, 10.0.0.1", "", []string{`Forwarded: for=192.0.2.9;secret="a\", for=6.6.6.6, \"b"`}},
		{"Forwarded that says nothing", "Forwarded", "10.0.0.1", "", []string{"Forwarded: ;, by=_x"}},
	} {
		peer := c.chain[strings.LastIndex(c.chain, " ")+1:]
		want := told(c.chain, cmp.Or(c.site, "http://inner.example"))
		if got, no := hear(t, peer, c.by, c.fields...); no.Code != 0 || got != want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", c.name, got, no, want)
		}
	}
	lists := []string{
		"X-Forwarded-For: 6.6.6.6, 192.0.2.9, 10.1.1.1", "X-Forwarded-Proto: ftp, https, http",
		"X-Forwarded-Host: evil.example, shop.example, lb.internal", "X-Forwarded-Port: 1, 8443, 80",
	}
	want := told("192.0.2.9, 10.1.1.1, 10.0.0.1", "https://shop.example")
	want.port = "8443"
	if got, no := hear(t, "10.0.0.1", "X-Forwarded-For", lists...); no.Code != 0 || got != want {
		t.Errorf("lists in which each proxy wrote its own:\n got %+v, %v\nwant %+v", got, no, want)
	}
}

func TestForwardedThatIsNotInOrderIsRefused(t *testing.T) {
	for _, v := range []string{
		`for="192.0.2.9`, `for="192.0.2.9\"`, `for=`, `for`, `=192.0.2.9`, `for=192.0.2.9;for=6.6.6.6`, `proto=http;proto=https`,
		`for=192.0.2.9 proto=https`, `for="192.0.2.9"x`, `for = 192.0.2.9`, `for=192.0.2.9;"x"`, `for={}`, `host=a;host=b`,
	} {
		got, no := hear(t, "10.0.0.1", "Forwarded", "Forwarded: for=192.0.2.1, "+v)
		_, ofVisitor := hear(t, "192.0.2.1", "Forwarded", "Forwarded: "+v) // which is not looked at
		if no.Code != 400 || ofVisitor.Code != 0 {
			t.Errorf("%q: got %+v, %v, want a refusal; of a visitor: %v", v, got, no, ofVisitor)
		}
	}
}

func TestLongChainsAreCut(t *testing.T) {
	for by, prefix := range map[string]string{"X-Forwarded-For": "", "Forwarded": "for="} {
		list := prefix + "192.0.2.1"
		for i := range 60 {
			list += fmt.Sprintf(", %s10.0.1.%d", prefix, i)
		}
		if got, no := hear(t, "10.0.0.1", by, by+": "+list); no.Code != 0 || got.client != "10.0.1.44" || strings.Count(got.chain, ",") != chainMax {
			t.Errorf("%s: got %+v, %v", by, got, no)
		}
	}
}

// FuzzForwarded holds what must be so whatever comes: nobody but a trusted proxy
// names the visitor; what is told to the origin is in order; and what a visitor
// sends, so that a proxy adds to it, changes nothing.
func FuzzForwarded(f *testing.F) {
	f.Add("6.6.6.6", "https", "shop.example")
	f.Add("for=6.6.6.6;proto=https", "http, https", "a, b:80")
	f.Add(`for="[2001:db8::9]:_x", for=unknown`, "", "")
	f.Add(`for="`, ",", `"`)
	f.Add(`for="a\", for=6.6.6.6`, "wss", "[::1]:80")
	f.Add("[::1]:0, ::ffff:1.2.3.4, 1.2.3.4:70000", "x", "y")
	f.Add("10.1.1.1, 10.1.1.2, fd00::1", "http", "z")
	f.Add("192.0.2.9", "https", "a:")
	f.Fuzz(func(t *testing.T, list, proto, host string) {
		const visitor = "192.0.2.9"
		for _, by := range []string{"X-Forwarded-For", "Forwarded", "X-Real-IP"} {
			fields := func(last string) []string {
				all := []string{by + ": " + list, "X-Forwarded-Proto: " + proto, "X-Forwarded-Host: " + host, "X-Forwarded-Port: " + proto}
				if last != "" {
					all[0] += ", " + last
				}
				return all
			}
			if strings.ContainsAny(list+proto+host, "\r\n") {
				return
			}
			if got, no := hear(t, visitor, by, fields("")...); no.Code == 0 && got != told(visitor, "http://inner.example") {
				t.Fatalf("%s: a visitor says %q and is heard as %+v", by, fields(""), got)
			}
			last := map[string]string{"Forwarded": "for="}[by] + visitor
			got, no := hear(t, "10.0.0.1", by, fields(last)...)
			if no.Code == 0 && (got.client != visitor || got.chain != visitor+", 10.0.0.1") {
				t.Fatalf("%s: %q hides a visitor: %+v", by, fields(last), got)
			}
			if got, no = hear(t, "10.0.0.1", by, fields("")...); no.Code != 0 {
				continue
			}
			// What we tell is understood by who reads as we do.
			again, no := hear(t, "10.0.0.2", "Forwarded", "Forwarded: "+got.forwarded)
			if no.Code != 0 || again.client != got.client && !strings.HasPrefix(got.client, "10.") && !strings.HasPrefix(got.client, "fd") ||
				again.proto != got.proto || again.host != got.host {
				t.Fatalf("%s: %+v is heard as %+v, %v", by, got, again, no)
			}
			if n, err := strconv.ParseUint(got.port, 10, 16); err != nil || n == 0 {
				t.Fatalf("%s: port %q", by, got.port)
			}
		}
	})
}

// TestHostsThatAreNotBelieved are answered as if nothing had been said.
func TestHostsThatAreNotBelieved(t *testing.T) {
	for _, host := range []string{"", "a b", "a/b", "a@b", "a:b", "a:0", "a:65536", "a\"", "[::1", "..", "a..b", strings.Repeat("a", 254), "g\xc3\xb6d"} {
		var r http1.Request
		var s Sender
		head := "Host: inner.example\r\nX-Forwarded-Host: " + host + "\r\n\r\n"
		if no := r.Parse(http1.RawHead{Method: []byte(http.MethodGet), Target: []byte("/"), Protocol: []byte("HTTP/1.1"), Fields: []byte(head)}); no.Code != 0 {
			t.Fatalf("%q: %v", host, no)
		}
		s.Locate(&r, trusting[0].Addr(), false, &Trust{Proxies: trusting, Field: FieldForwardedFor})
		if s.Host != nil || s.Name != "" {
			t.Errorf("%q is believed as %q", host, s.Name)
		}
	}
}
