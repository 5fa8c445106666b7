//go:build unix

package conformance

import (
	"context"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// standIn is a proxy that does what the documentation of another one says, with that
// one's configuration. What it does about a request is the filter's.
type standIn struct {
	filter  filter
	forward *httputil.ReverseProxy
}

// filter decides about a request before it goes on to the site.
type filter interface {
	// check makes a request what the site is to get, or says what is answered instead.
	check(r *http.Request) verdict
	// within is how long a whole answer of the site may take, unless it is an upgrade;
	// 0: as long as it likes.
	within() time.Duration
}

// verdict is what comes of a check. The zero value has the request go on.
type verdict struct {
	status int // of an answer instead of the site's; 0: there is none
	header http.Header
	body   string
	change func(http.Header) // what is done with the fields of the site's answer; nil: nothing
}

type changeKey struct{}

// startStandIn serves a filter in front of a site.
func startStandIn(addr, site string, f filter) *proxy {
	s := &standIn{filter: f}
	target := &url.URL{Scheme: "http", Host: site}
	s.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			for name, values := range r.In.Header {
				if strings.HasPrefix(name, "X-Forwarded-") { // the library leaves them out
					r.Out.Header[name] = values
				}
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			if change, ok := resp.Request.Context().Value(changeKey{}).(func(http.Header)); ok && change != nil {
				change(resp.Header)
			}
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	_, stop, err := rig.Serve(&http.Server{Handler: s}, addr)
	rig.Must(err)
	return &proxy{addr, func() {
		stop()
		if c, ok := f.(io.Closer); ok {
			c.Close()
		}
	}}
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := s.filter.check(r)
	if v.status != 0 {
		maps.Copy(w.Header(), v.header)
		w.WriteHeader(v.status)
		io.WriteString(w, v.body)
		return
	}
	ctx := context.WithValue(r.Context(), changeKey{}, v.change)
	if limit := s.filter.within(); limit > 0 && r.Header.Get("Upgrade") == "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	s.forward.ServeHTTP(w, r.WithContext(ctx))
}

// hopFields are about one connection only (RFC 9110, 7.6.1, and what both proxies take
// for one).
var hopFields = []string{
	"Connection", "Keep-Alive", "Te", "Trailer", "Trailers", "Transfer-Encoding", "Upgrade", "Proxy-Authenticate", "Proxy-Connection",
}

func removeHops(h http.Header) {
	for _, name := range hopFields {
		h.Del(name)
	}
}

// askingClient is for questions to the node: each answer is the verdict, redirects too.
func askingClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 16},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func visitorAddress(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}
