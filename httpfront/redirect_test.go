package httpfront

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/httpfront/edge"
	"github.com/ropeline/ropeline/httpfront/http1"
)

// serveRedirect starts what sends visitors to TLS.
func serveRedirect(t *testing.T, change ...func(*Config)) *front {
	t.Helper()
	ln := loopbackListener(t)
	f := judges(t, fakeRooms{}, append(change, func(c *Config) { c.Redirect.Listener = ln })...)
	return &front{tb: t, addr: ln.Addr().String(), front: f, stop: run(t, f.RunRedirect), client: newClient(t)}
}

func TestRedirectGoesToTheSameAddressWithTLS(t *testing.T) {
	standard := serveRedirect(t)
	other := serveRedirect(t, func(c *Config) { c.Redirect.Port = 8443 })
	for _, c := range []struct{ method, target, host, toHost, to string }{
		{"GET", "/", "shop.example", "shop.example", "/"},
		{"HEAD", "/", "shop.example", "shop.example", "/"},
		{"GET", "/a/b?c=d%20e&f=%2F", "Shop.Example:8080", "shop.example", "/a/b?c=d%20e&f=%2F"},
		{"GET", "/a", "shop.example.", "shop.example", "/a"},
		{"GET", "/a", "192.0.2.1:80", "192.0.2.1", "/a"},
		{"GET", "/a", "[2001:db8::1]:80", "[2001:db8::1]", "/a"},
		{"DELETE", "/a", "shop.example", "shop.example", "/a"},
		{"OPTIONS", "*", "shop.example", "shop.example", "/"},
		{"GET", "http://shop.example/a", "shop.example", "shop.example", "/a"},
		// None of these leads to another host.
		{"GET", "//evil.example/x", "shop.example", "shop.example", "/evil.example/x"},
		{"GET", "/@evil.example", "shop.example", "shop.example", "/@evil.example"},
		{"GET", "/.evil.example", "shop.example", "shop.example", "/.evil.example"},
	} {
		for f, port := range map[*front]string{standard: "", other: ":8443"} {
			f.send(c.method, c.target, "Host", c.host).is(t, 308, "\r\nLocation: https://"+c.toHost+port+c.to+"\r\n", "\r\nCache-Control: no-store\r\n")
		}
	}
}

// TestRedirectsHaveABoundOfTheirOwn: it is not that of visitors.
func TestRedirectsHaveABoundOfTheirOwn(t *testing.T) {
	f := serveRedirect(t, func(c *Config) { c.Limits.Redirects = 1 })
	f.dial()
	waitFor(t, "the one place to be taken", func() bool {
		return strings.HasPrefix(f.raw(lastGet), "HTTP/1.1 503 ")
	})
}

// TestRedirectRefusesWhatIsNotInOrder has hosts and heads in it with which a redirect
// could be made to lead elsewhere.
func TestRedirectRefusesWhatIsNotInOrder(t *testing.T) {
	f := serveRedirect(t)
	for _, request := range []string{
		"GET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: \r\n\r\n",
		"GET / HTTP/1.1\r\nHost: good.example@evil.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: evil.example/\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n",
		"GET http://evil.example/ HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		"GET /\rX: y HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		got := f.raw(request)
		answered(t, request, got, 400)
		lacks(t, request, got, "Location")
	}
	f.get("/").is(t, 308)
}

func TestRedirectDoesNotWaitForBodies(t *testing.T) {
	f := serveRedirect(t)
	got := f.raw("POST /a HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("a", bufferSize))
	answered(t, "a body", got, 308, "\r\nConnection: close\r\n")
	got = f.raw("POST /a HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
	answered(t, "Expect", got, 308)
	lacks(t, "Expect", got, "100 Continue")
}

func TestRedirectAnswersChallenges(t *testing.T) {
	f := serveRedirect(t, func(c *Config) {
		c.Redirect.Challenge = func(host, path string) (string, bool) {
			return "token.key", host == "shop.example" && path == challengePath+"token"
		}
	})
	equal(t, "the token", f.get(challengePath+"token", "Host", "shop.example:80").is(t, 200).body, "token.key")
	for _, c := range [][3]string{
		{"GET", challengePath + "other", "shop.example"},
		{"GET", challengePath + "token", "other.example"},
		{"POST", challengePath + "token", "shop.example"},
		{"GET", "/.well-known/acme-challenge", "shop.example"},
	} {
		f.do(c[0], c[1], nil, "Host", c[2]).is(t, 308)
	}
}

// TestOldTLSIsRefused also shows which protocols are offered.
func TestOldTLSIsRefused(t *testing.T) {
	f := serveTLS(t, nil)
	dial := func(version uint16, protocols ...string) (protocol string, err error) {
		c := f.secure(f.dial(), func(c *tls.Config) {
			c.MinVersion, c.MaxVersion, c.NextProtos = version, version, protocols
		})
		defer c.Close()
		err = c.Handshake()
		return c.ConnectionState().NegotiatedProtocol, err
	}
	for version, want := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		protocol, err := dial(version, "h2", "http/1.1")
		if (err == nil) != want || want && protocol != "http/1.1" {
			t.Errorf("%s: got protocol %q, %v", tls.VersionName(version), protocol, err)
		}
	}
	if _, err := dial(tls.VersionTLS13, edge.ACMEProtocol); err == nil {
		t.Error("a challenge was negotiated, and nobody answers any")
	}
}

// TestChallengesOverTLSEndWithTheHandshake has a certificate authority look.
func TestChallengesOverTLSEndWithTheHandshake(t *testing.T) {
	f := serveTLS(t, nil, func(c *Config) { c.TLS.NextProtos = []string{edge.ACMEProtocol} })
	c := f.secure(f.dial(), func(c *tls.Config) { c.NextProtos = []string{edge.ACMEProtocol} })
	noError(t, c.Handshake())
	equal(t, "the protocol", c.ConnectionState().NegotiatedProtocol, edge.ACMEProtocol)
	io.WriteString(c, plainGet)
	if b, _ := io.ReadAll(c); len(b) > 0 {
		t.Errorf("got %q", b)
	}
	f.works()
}

// FuzzRedirect holds that whatever is asked for, a redirect leads to the host that was
// asked for, and is one field.
func FuzzRedirect(f *testing.F) {
	f.Add("GET", "/a?b=c", "shop.example", 443)
	f.Add("OPTIONS", "*", "[2001:db8::1]:80", 8443)
	f.Add("GET", "//evil.example/..", "shop.example.", 443)
	f.Add("GET", "/\\evil.example", "good@evil.example", 443)
	f.Add("GET", "//\\evil.example", "shop.example", 443)
	f.Add("HEAD", "http://shop.example///evil.example", "shop.example", 443)
	f.Add("GET", "http://shop.example@evil.example/", "shop.example", 443)
	f.Add("GET", "/\xff\x00\r\nX: y", "192.0.2.1:1", 1)
	f.Fuzz(func(t *testing.T, method, target, host string, port int) {
		r := newRequest()
		defer r.release()
		no := r.Parse(http1.RawHead{Method: []byte(method), Target: []byte(target), Protocol: []byte("HTTP/1.1"), Fields: []byte("Host: " + host + "\r\n\r\n")})
		if r.Host == "" || port < 1 || port > 65535 {
			return
		}
		to := no.To
		if no.Code == 0 {
			to = string(r.Target)
		}
		if to == "" {
			return
		}
		// Where a browser has come from the same host, this alone leads elsewhere.
		if len(to) > 1 && strings.ContainsRune("/\\", rune(to[1])) {
			t.Fatalf("%q is redirected to %q", target, to)
		}
		got := (&Redirect{Port: port}).location(r, to)
		if strings.ContainsAny(got, " \t\r\n\x00") {
			t.Fatalf("%q of %q: got %q", target, host, got)
		}
		rest, ok := strings.CutPrefix(got, "https://"+r.Host)
		if p := fmt.Sprintf(":%d", port); port != 443 {
			rest, ok = strings.CutPrefix(rest, p)
		}
		if !ok || !strings.HasPrefix(rest, "/") {
			t.Fatalf("%q of %q: got %q", target, host, got)
		}
		// Browsers and we agree on where the host ends.
		if u, err := url.Parse(got); err == nil && u.Hostname() != strings.Trim(r.Host, "[]") {
			t.Fatalf("%q of %q: got %q, whose host is %q", target, host, got, u.Hostname())
		}
	})
}

// A redirect to TLS is neither counted nor logged.
func TestRedirectsAreNoRequestsOfTheSite(t *testing.T) {
	w := &witness{}
	f := serveRedirect(t, w.watch)
	f.send("GET", "/a", "Host", "shop.example").is(t, 308)
	f.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	equal(t, "redirects that are counted or logged", len(w.count)+len(w.lines), 0)
}
