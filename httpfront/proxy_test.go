package httpfront

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

func TestHopByHopFieldsAreRemoved(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "X-Named", "Ropeline-State", "Upgrade"} {
			w.Header().Set(name, "origin")
		}
		w.Header().Set("Connection", "X-Named, keep-alive")
		w.Header().Set("X-Kept", "origin")
		echo(w, r)
	}))
	got := f.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close, X-Gone ,X-Also-Gone\r\nx-gone: 1\r\nX-ALSO-GONE: 1\r\n" +
		"Keep-Alive: 1\r\nProxy-Authorization: 1\r\nProxy-Connection: 1\r\nTE: gzip\r\nTrailer: X\r\nUpgrade: h2c\r\nHTTP2-Settings: a\r\n" +
		"X-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\nX-Forwarded-Server: x\r\nRopeline-Admitted: 1\r\nX-Stays: 1\r\n\r\n")
	head, body, _ := strings.Cut(got, "\r\n\r\n")
	for _, name := range []string{"Keep-Alive", "Proxy-", "X-Named", "Ropeline-", "Upgrade"} {
		lacks(t, "the client", head, "\r\n"+name)
	}
	has(t, "the client", head, "X-Kept: origin")
	has(t, "the origin", body, "X-Stays: 1")
	lacks(t, "the origin", body, "X-Gone", "X-Also", "Keep-Alive", "Proxy-", "Te:", "Trailer", "Upgrade", "Http2", "X-Original", "X-Rewrite",
		"X-Forwarded-Server", "Ropeline-Admitted", "Connection")
}

func TestForwardingFields(t *testing.T) {
	spoof := []string{
		"X-Forwarded-For", "6.6.6.6", "X-Forwarded-For", "7.7.7.7, 192.0.2.9", "X_Forwarded_For", "6.6.6.6",
		"X-Forwarded-Proto", "https", "X-Forwarded-Host", "visitors.example", "X-Real-IP", "6.6.6.6", "Forwarded", "for=6.6.6.6",
		"Host", "inner.example:8080",
	}
	for name, c := range map[string]struct {
		trusted []netip.Prefix
		want    map[string]string
	}{
		"nobody trusted": {nil, map[string]string{
			"X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1", "X-Forwarded-Proto": "http",
			"X-Forwarded-Host": "inner.example:8080", "X-Forwarded-Port": "8080", "Forwarded": `for=127.0.0.1;proto=http;host="inner.example:8080"`,
		}},
		"peer trusted": {loopback, map[string]string{
			"X-Forwarded-For": "192.0.2.9, 127.0.0.1", "X-Real-Ip": "192.0.2.9", "X-Forwarded-Proto": "https",
			"X-Forwarded-Host": "visitors.example", "X-Forwarded-Port": "443",
			"Forwarded": `for=192.0.2.9;proto=https;host="visitors.example", for=127.0.0.1`,
		}},
		"two proxies trusted": {append(prefixes("192.0.2.0/24"), loopback...), map[string]string{
			"X-Real-Ip": "7.7.7.7", "X-Forwarded-For": "7.7.7.7, 192.0.2.9, 127.0.0.1",
			"Forwarded": `for=7.7.7.7;proto=https;host="visitors.example", for=192.0.2.9, for=127.0.0.1`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var seen atomic.Pointer[http.Request]
			f := serve(t, nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen.Store(r) }), trusts(c.trusted))
			f.get("/", spoof...)
			h := seen.Load().Header
			for name, want := range c.want {
				equal(t, name, strings.Join(h.Values(name), "|"), want)
			}
			lacks(t, "the origin", strings.ToUpper(fmt.Sprint(h)), "X_FORWARDED_FOR")
			equal(t, "the host", seen.Load().Host, "inner.example:8080")
		})
	}
}

func TestPassesDoNotReachTheOrigin(t *testing.T) {
	var cookies atomic.Value
	f := serve(t, nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cookies.Store(strings.Join(r.Header.Values("Cookie"), "|"))
	}))
	for sent, want := range map[string]string{
		"ropeline=x":                     "",
		"a=b; ropeline=x; c=d":           "a=b; c=d",
		"__Host-ropeline=x;a=\"b c\"":    "a=\"b c\"",
		"ropeline_shop=x; ropelines=y":   "ropelines=y",
		"__Host-ropeline_x=1; a; =b; b=": "a; =b; b=",
	} {
		f.get("/", "Cookie", sent)
		equal(t, sent+", at the origin", cookies.Load().(string), want)
	}
}

func TestOwnTLS(t *testing.T) {
	f := serveTLS(t, fakeRooms{path: "/wait", room: newRoom(never)})
	for range 3 {
		got := send(t, f.client, "GET", "https://"+f.addr+"/wait", nil)
		if c := got.Cookies(); len(c) != 1 || c[0].Name != "__Host-ropeline" || !c[0].Secure {
			t.Errorf("got %v", c)
		}
	}
}

func TestOriginOverTLS(t *testing.T) {
	origin := httptest.NewTLSServer(http.HandlerFunc(echo))
	defer origin.Close()
	f := serveTo(t, nil, origin.URL, func(c *Config) {
		c.OriginTLS = origin.Client().Transport.(*http.Transport).TLSClientConfig
	})
	f.gets(3, "/", 200)
	serveTo(t, nil, origin.URL).get("/").is(t, 502) // its certificate is strange
}
