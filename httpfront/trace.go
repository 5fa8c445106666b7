package httpfront

import (
	"strings"
	"time"

	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/observe/tracing"
	"github.com/ropeline/ropeline/node"
)

// Fields in which a trace goes from one to the next (W3C Trace Context).
const (
	fieldTraceparent = "traceparent"
	fieldTracestate  = "tracestate"
)

// traced begins the trace of a request, if it has one. Only trusted proxies say which one it
// belongs to: visitors could have every request of theirs traced, or name traces of others.
func (c *record) traced(r *request, asked bool) {
	if c == nil || c.front.cfg.Tracer == nil {
		return
	}
	var parent tracing.Parent
	if r.via.Trusted && !asked { // who asks hands on what the visitor sent
		parent = r
	}
	if c.trace = c.front.cfg.Tracer.Begin(c.began, parent); c.trace != nil {
		c.told = tracing.Request{Method: r.Method, Host: r.Host, Path: strings.Clone(r.Path.Decoded)}
	}
}

// now returns the time where it is wanted for a trace.
func (c *record) now() (t time.Time) {
	if c != nil && c.trace != nil {
		t = time.Now()
	}
	return t
}

// decided notes what a decision has taken from a time that now has returned.
func (c *record) decided(from time.Time) {
	if c != nil && c.trace != nil {
		c.trace.Part("decision", from, time.Now())
	}
}

// waited notes that a decision has waited for another node, until now.
func (c *record) waited(v *node.Verdict) {
	if c != nil && c.trace != nil && v.Word != "" {
		to := time.Now()
		c.trace.Part(v.Word+" call", to.Add(-v.Asked), to)
	}
}

// call begins the part that an origin has in the request.
func (c *record) call(r *request, origin string) *tracing.Call {
	if c == nil || c.trace == nil {
		return nil
	}
	call := c.trace.Call(origin)
	r.traceparent = call.Traceparent()
	return call
}

// Get returns the value of a header field that stands once, for tracing.
func (r *request) Get(name string) string {
	value, n := "", 0
	for v := range r.All(name) {
		value = string(v)
		n++
	}
	if n != 1 {
		return ""
	}
	return value
}

// mayTrace reports whether a field goes on to the origin as far as traces are concerned. Where
// this front traces nothing, it is none of its business what visitors send.
func (r *request) mayTrace(name []byte) bool {
	switch {
	case !r.traces:
		return true
	case isNamed(name, fieldTraceparent):
		return r.via.Trusted && r.traceparent == ""
	case isNamed(name, fieldTracestate):
		return r.via.Trusted
	}
	return true
}

// appendTrace tells the origin which trace the request belongs to.
func (r *request) appendTrace(dst []byte) []byte {
	if r.traceparent == "" {
		return dst
	}
	return http1.AppendField(dst, fieldTraceparent, r.traceparent)
}
