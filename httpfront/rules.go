package httpfront

import (
	"bytes"
	"context"
	"log/slog"
	"unsafe"

	"github.com/ropeline/ropeline/httpfront/gate/expr"
	"github.com/ropeline/ropeline/httpfront/http1"
)

// bypasses reports whether a rule lets r pass the room, and counts it. It allocates
// nothing and looks at no more rules than it needs.
func (f *Front) bypasses(room Room, made *roomFront, r *request) bool {
	rule, passes := f.bypassOf(made, r)
	if passes {
		room.CountBypass()
	}
	if ctx := context.Background(); rule != nil && f.cfg.Logger.Enabled(ctx, slog.LevelDebug) {
		f.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "a request bypasses its room", slog.String("room", room.Settings().Name),
			slog.Int("rule", rule.index), slog.String("description", rule.description))
	}
	return passes
}

// bypassOf reports whether anything lets r pass the room: the first rule that matches, or
// none of them where r is of the crawler of a search engine that may.
func (f *Front) bypassOf(made *roomFront, r *request) (by *rule, passes bool) {
	if made.front.CrawlerBypass && f.cfg.Crawlers != nil && f.isCrawler(r) {
		return nil, true
	}
	if len(made.rules) == 0 {
		return nil, false
	}
	f.describe(r)
	for i := range made.rules {
		if r.holds(made.rules[i].expression, true) {
			return &made.rules[i], true
		}
	}
	return nil, false
}

func (f *Front) isCrawler(r *request) bool {
	for agent := range r.All("user-agent") {
		return f.cfg.Crawlers.Is(agent, r.via.Client)
	}
	return false
}

// holds reports whether an expression is true of r in every reading of its path, or, unless every
// is asked for, in any: with the parameters of segments and without, and with a slash that is
// encoded as the end of a segment and as a part of it. Which of these the origin serves is not known.
func (r *request) holds(e *expr.Expression, every bool) bool {
	if e.Match(&r.facts) != every {
		return !every
	}
	if r.Path.Literal == "" && r.Path.Route == r.Path.Decoded {
		return every
	}
	defer func() { r.facts.Path = r.Path.Decoded }()
	for _, path := range [...]string{r.Path.Route, r.Path.Literal, r.Path.LiteralRoute} {
		if r.facts.Path = path; path != "" && e.Match(&r.facts) != every {
			return !every
		}
	}
	return every
}

// describe fills in what expressions see of r. Its texts are r's own bytes, and so
// good until r is released.
func (f *Front) describe(r *request) {
	x := &r.facts
	x.Method, x.Version, x.Host, x.Path = r.Method, "HTTP/1.0", r.Host, r.Path.Decoded
	if r.HTTP11 {
		x.Version = "HTTP/1.1"
	}
	if i := bytes.IndexByte(r.Target, '?'); i >= 0 {
		x.Query = asText(r.Target[i+1:])
	}
	x.Secure, x.Source = r.via.Secure, r.via.Client
	x.Country = r.countryOf()
	x.Headers = r
}

// Header returns field i, for expressions.
func (r *request) Header(i int) (name, value string, ok bool) {
	if i >= len(r.Fields) {
		return "", "", false
	}
	return asText(r.Fields[i].Name), asText(r.Fields[i].Value), true
}

// countryOf returns what the field says that tells the visitor's country, in upper
// case; what is not two letters or digits is none. XX is what front ends write that do
// not know. Who proxies to us is believed about it where X-Forwarded-For is, but who
// asks only if the operator says so: such a proxy hands on all that visitors send.
func (r *request) countryOf() string {
	if r.via.Country == "" {
		return ""
	}
	var last []byte
	for v := range r.All(r.via.Country) {
		last = v // of several proxies the nearest wrote the last
	}
	if len(last) != len(r.country) || !http1.IsAlnum(last[0]) || !http1.IsAlnum(last[1]) {
		return ""
	}
	for i, c := range last {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		r.country[i] = c
	}
	if c := asText(r.country[:]); c != "XX" {
		return c
	}
	return ""
}

// asText returns b as a string without copying it. Who calls it sees to it that b
// stays as it is for as long as the string is used.
func asText(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
