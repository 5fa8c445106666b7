package middleware

import (
	"maps"
	"net"
	"net/http"
	"strings"

	"github.com/ropeline/ropeline/httpfront/integrations/middleware/internal/site"
)

// Handler returns a handler that asks about each request, and has next serve those of
// visitors who are let in.
//
// A pass for the visitor goes into the answer of next, which no shared cache may keep
// then: its Cache-Control becomes private, with what it says to browsers. A command of next, in the field
// Ropeline-Command or Cf-Waiting-Room-Command of an answer, ends the visitor's session,
// and does not reach the visitor. What next has to say about its own answers is not
// touched otherwise. It does not see the passes of visitors among their cookies.
func (g *Gate) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := g.question(r)
		v := g.Ask(r.Context(), q)
		if !v.Admitted {
			h := w.Header()
			maps.Copy(h, v.Header)
			w.WriteHeader(v.Code)
			w.Write(v.Body) // to HEAD, net/http writes none of it
			return
		}
		// The site's own copy of the request: handlers outside this one may look at it.
		r = r.Clone(r.Context())
		r.Header.Del(g.cfg.ProofField)
		if v.Proof != "" {
			r.Header.Set(g.cfg.ProofField, v.Proof)
		}
		leaveForeignCookies(r.Header)
		site.LeaveUpgrades(r.Header)
		p := &passing{ResponseWriter: w, cookie: v.Cookie, revoke: func() string { return g.Obey(r.Context(), q, v) }}
		next.ServeHTTP(p, r)
		p.finish()
	})
}

// leaveForeignCookies takes passes out of a request's cookies.
func leaveForeignCookies(h http.Header) {
	lines := h["Cookie"]
	kept := make([]string, 0, len(lines))
	for _, l := range lines {
		if l = site.ForeignCookies(l); l != "" {
			kept = append(kept, l)
		}
	}
	if h["Cookie"] = kept; len(kept) == 0 {
		delete(h, "Cookie")
	}
}

// question says what a node has to know of a request.
func (g *Gate) question(r *http.Request) Question {
	q := Question{Method: r.Method, Target: r.RequestURI, Host: r.Host, Scheme: "http", Header: r.Header, Body: r.ContentLength != 0}
	if q.Target == "" || !strings.HasPrefix(q.Target, "/") {
		q.Target = r.URL.RequestURI() // an absolute address, or a request that never was on a wire
	}
	if r.TLS != nil {
		q.Scheme = "https"
	}
	if q.For = r.RemoteAddr; q.For != "" {
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
			q.For = host
		}
	}
	g.Believe(&q)
	return q
}

// Believe takes over what a proxy in front of the program says of the visitor in q.Header,
// as far as Config.TrustForwarded and Config.TrustForwardedHost say. It is for those that
// ask about requests by themselves, before they Ask.
//
// Where there are several proxies, each may have added to what it was told. In
// addresses and schemes the node finds the element that belongs to the visitor, since
// it knows which proxies to trust; a host is that of the nearest proxy.
func (g *Gate) Believe(q *Question) {
	if !g.cfg.TrustForwarded {
		return
	}
	h := q.Header
	if list := elements(h, "X-Forwarded-For"); len(list) > 0 {
		q.For = strings.Join(append(list, q.For), ", ")
	}
	if list := elements(h, "X-Forwarded-Host"); len(list) > 0 && g.cfg.TrustForwardedHost {
		q.Host = list[len(list)-1]
	}
	list := elements(h, "X-Forwarded-Proto")
	for i, scheme := range list {
		switch scheme = strings.ToLower(scheme); scheme {
		case "wss": // Traefik, of WebSockets
			scheme = "https"
		case "ws":
			scheme = "http"
		}
		list[i] = scheme
	}
	switch {
	case len(list) > 1: // one for each hop, as in For
		q.Scheme = strings.Join(append(list, q.Scheme), ", ")
	case len(list) == 1 && (list[0] == "http" || list[0] == "https"):
		q.Scheme = list[0]
	}
}

// elements returns the elements of a list in header fields, the nearest last.
func elements(h http.Header, name string) (list []string) {
	for _, line := range h.Values(name) {
		for e := range strings.SplitSeq(line, ",") {
			if e = strings.Trim(e, " \t"); e != "" {
				list = append(list, e)
			}
		}
	}
	return list
}
