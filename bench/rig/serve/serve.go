// Package serve has the servers in Go that measurements hold ropeline beside, each as small as it can be: fasthttp
// and net/http that give one answer, and both as proxies. They are what is left of a Go server when everything that
// ropeline does beyond its libraries is taken away.
//
// They run in processes of their own, so that their time can be told apart.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/bench/rate/bare"
)

// Kind is a kind of server.
type Kind string

// The kinds.
const (
	Bare          Kind = "bare"           // epoll and nothing else, with as many bytes as the answer has
	Fasthttp      Kind = "fasthttp"       // gives one answer
	NetHTTP       Kind = "net-http"       // the same
	FasthttpProxy Kind = "fasthttp-proxy" // a HostClient, with fields of one hop taken out
	NetHTTPProxy  Kind = "net-http-proxy" // httputil.ReverseProxy
)

// Config says what to serve. Kind and Listen are required.
type Config struct {
	Kind   Kind
	Listen string // host:port
	Site   string // host:port of the origin of a proxy
	Answer string // the file of what the others answer, of which a bare one has the length; empty: six bytes
}

const (
	// Two buffers of the library's own size would make two writes of a page.
	writeBuffer = 16 << 10
	// More than any measurement opens.
	mostConns = 4096
)

// Run serves until ctx ends.
func Run(ctx context.Context, c Config) (err error) {
	a := Plain(6)
	if c.Answer != "" {
		if a, err = load(c.Answer); err != nil {
			return err
		}
	}
	switch c.Kind {
	case Bare:
		s, err := bare.Listen(bare.Config{Address: c.Listen, Body: len(a.Body)})
		if err != nil {
			return err
		}
		return s.Serve(ctx)
	case Fasthttp:
		return runFasthttp(ctx, c.Listen, fasthttpAnswer(a))
	case NetHTTP:
		return runNetHTTP(ctx, c.Listen, netHTTPAnswer(a))
	case FasthttpProxy:
		return runFasthttp(ctx, c.Listen, fasthttpProxy(c.Site))
	case NetHTTPProxy:
		return runNetHTTP(ctx, c.Listen, netHTTPProxy(c.Site))
	}
	return fmt.Errorf("there is no kind %q", c.Kind)
}

func runFasthttp(ctx context.Context, listen string, h fasthttp.RequestHandler) error {
	s := &fasthttp.Server{Handler: h, WriteBufferSize: writeBuffer, NoDefaultServerHeader: true, DisableHeaderNamesNormalizing: true}
	defer context.AfterFunc(ctx, func() { _ = s.Shutdown() })()
	return s.ListenAndServe(listen)
}

func runNetHTTP(ctx context.Context, listen string, h http.Handler) error {
	s := &http.Server{Addr: listen, Handler: h}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func fasthttpAnswer(a Answer) fasthttp.RequestHandler {
	var made fasthttp.Response
	made.SetStatusCode(a.Status)
	for _, f := range a.Fields {
		made.Header.Add(f[0], f[1])
	}
	return func(ctx *fasthttp.RequestCtx) {
		made.Header.CopyTo(&ctx.Response.Header)
		ctx.Response.SetBodyRaw(a.Body)
	}
}

func netHTTPAnswer(a Answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for _, f := range a.Fields {
			h[f[0]] = append(h[f[0]], f[1])
		}
		w.WriteHeader(a.Status)
		_, _ = w.Write(a.Body)
	})
}

// hop are the fields that are of one hop only, as RFC 9110 has them.
var hop = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func fasthttpProxy(site string) fasthttp.RequestHandler {
	client := &fasthttp.HostClient{Addr: site, MaxConns: mostConns, NoDefaultUserAgentHeader: true, MaxIdleConnDuration: time.Minute}
	return func(ctx *fasthttp.RequestCtx) {
		req, resp := &ctx.Request, &ctx.Response
		for _, name := range hop {
			req.Header.Del(name)
		}
		req.Header.Add("X-Forwarded-For", ctx.RemoteIP().String())
		if err := client.Do(req, resp); err != nil {
			ctx.Error(err.Error(), http.StatusBadGateway)
			return
		}
		for _, name := range hop {
			resp.Header.Del(name)
		}
	}
}

func netHTTPProxy(site string) http.Handler {
	to := &url.URL{Scheme: "http", Host: site}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.SetXForwarded()
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{MaxIdleConns: mostConns, MaxIdleConnsPerHost: mostConns, DisableCompression: true},
	}
}
