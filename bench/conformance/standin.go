//go:build unix

package conformance

import (
	"context"
	"io"
	"log"
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
	// check answers the request and returns false, or makes it what the site is to
	// get and returns what is to be done with the site's answer, if anything.
	check(w http.ResponseWriter, r *http.Request) (change func(http.Header), ok bool)
	// within is how long a whole answer of the site may take, unless it is an upgrade;
	// 0: as long as it likes.
	within() time.Duration
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
	change, ok := s.filter.check(w, r)
	if !ok {
		return
	}
	ctx := context.WithValue(r.Context(), changeKey{}, change)
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
