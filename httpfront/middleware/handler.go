package middleware

import (
	"bufio"
	"net"
	"net/http"
	"strings"
)

// Handler returns a handler that asks about each request, and has next serve those of
// visitors who are let in.
//
// A pass for the visitor goes into the answer of next, which no shared cache may keep
// then: its Cache-Control becomes private, no-store. What next has to say about its own
// answers is not touched otherwise.
func (g *Gate) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := g.Ask(r.Context(), g.question(r))
		if !v.Admitted {
			h := w.Header()
			for name, values := range v.Header {
				h[name] = values
			}
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
		if v.Cookie == "" {
			next.ServeHTTP(w, r)
			return
		}
		p := &passing{ResponseWriter: w, cookie: v.Cookie}
		next.ServeHTTP(p, r)
		p.addPass() // next may have written nothing at all
	})
}

// question says what a node has to know of a request.
func (g *Gate) question(r *http.Request) Question {
	q := Question{Method: r.Method, Target: r.RequestURI, Host: r.Host, Scheme: "http", Header: r.Header}
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

// passing adds a pass to an answer as late as can be: what serves the request may replace
// the fields of its answer until then.
type passing struct {
	http.ResponseWriter
	cookie string
	added  bool
}

func (p *passing) addPass() {
	if !p.added {
		p.added = true
		h := p.Header()
		h.Add("Set-Cookie", p.cookie)
		h.Set("Cache-Control", "private, no-store")
	}
}

func (p *passing) WriteHeader(code int) {
	if code >= 200 || code == http.StatusSwitchingProtocols {
		p.addPass()
	}
	p.ResponseWriter.WriteHeader(code)
}

func (p *passing) Write(b []byte) (int, error) {
	p.addPass()
	return p.ResponseWriter.Write(b)
}

// FlushError is for http.ResponseController.
func (p *passing) FlushError() error {
	p.addPass()
	return http.NewResponseController(p.ResponseWriter).Flush()
}

// Flush is http.Flusher's.
func (p *passing) Flush() { _ = p.FlushError() }

// Hijack is http.Hijacker's. Who takes the connection over writes the answer, too, and the
// pass is not in it: the visitor's next answer has it.
func (p *passing) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(p.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (p *passing) Unwrap() http.ResponseWriter { return p.ResponseWriter }

var (
	_ http.Flusher  = (*passing)(nil)
	_ http.Hijacker = (*passing)(nil)
)
