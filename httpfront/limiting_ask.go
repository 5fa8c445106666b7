package httpfront

import (
	"context"
	"encoding/binary"
	"log/slog"
	"time"

	"github.com/ropeline/ropeline/httpfront/conn/address"
	"github.com/ropeline/ropeline/httpfront/gate/expr"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
)

// askedLimit is a rate limit rule that a request was held against.
type askedLimit struct {
	by      *rateLimit
	key     limit.Key
	verdict limit.Verdict
	later   bool // it is counted once the response has come, if it is
}

// limitRules returns the rate limit rules that requests are held against, in their order.
func (f *Front) limitRules() []*rateLimit { return *f.limits.Load() }

// limitedBy holds r against the rate limit rules and counts it. It returns the first one by
// which r is answered instead of passed on; nil if there is none. visitor is who has sent
// it, as the pass of its room says; zero: nobody who is known. In a room that only tries its
// limits nobody is sent to the line: rules that do that let pass.
//
// What it finds is in r.limits, for the fields that tell of it.
func (f *Front) limitedBy(r *request, visitor node.VisitorID, dryRun bool, now time.Time) *askedLimit {
	rules := f.limitRules()
	if len(rules) == 0 {
		return nil
	}
	f.describe(r)
	for _, l := range rules {
		if !r.isAbout(l.expression) {
			continue
		}
		r.limits = append(r.limits, l.ask(r, visitor, now))
		a := &r.limits[len(r.limits)-1]
		if !a.verdict.Limited {
			continue
		}
		if !r.again {
			l.tally.limited.Add(1)
			f.tellLimited(r, a)
		}
		if l.rule.Action == limit.Block || l.rule.Action == limit.Queue && !dryRun {
			r.limited = true
			return a
		}
	}
	return nil
}

// isAbout reports whether an expression is true of r in any reading of its path: nobody
// gets round a limit by writing a path in another way.
func (r *request) isAbout(e *expr.Expression) bool { return r.holds(e, false) }

// ask holds a request against one rule that is about it.
func (l *rateLimit) ask(r *request, visitor node.VisitorID, now time.Time) askedLimit {
	r.values = l.appendValues(r.values[:0], r, visitor)
	a := askedLimit{by: l, key: l.meter.Key(r.values)}
	switch {
	case r.again:
		a.verdict = l.meter.Check(a.key, now)
	case l.counting == nil:
		a.verdict = l.meter.Take(a.key, now)
	case l.counting.Answers():
		a.verdict, a.later = l.meter.Peek(a.key, now), true
	case r.isAbout(l.counting):
		a.verdict = l.meter.Take(a.key, now)
	default:
		a.verdict = l.meter.Check(a.key, now)
	}
	return a
}

// What an encoded value begins with.
const (
	valueMissing   = 0 // the request does not have it
	valueThere     = 1
	valueOfVisitor = 2 // the id of a visitor; who has none counts by address
)

// appendValues appends the values of the characteristics, in a form in which two that
// differ are never alike. The path is without the parameters of segments: with them
// whoever writes "/a;1" and "/a;2" would have a counter for each.
func (l *rateLimit) appendValues(dst []byte, r *request, visitor node.VisitorID) []byte {
	r.facts.Path = r.Path.Route
	defer func() { r.facts.Path = r.Path.Decoded }()
	for _, c := range l.values {
		if c.visitor && visitor != (node.VisitorID{}) {
			dst = append(append(dst, valueOfVisitor), visitor[:]...)
			continue
		}
		from := len(dst)
		dst = append(dst, valueThere, 0, 0)
		var ok bool
		if c.visitor || c.value.IsAddress() {
			dst, ok = l.appendNetwork(dst, r)
		} else {
			dst, ok = c.value.Append(dst, &r.facts)
		}
		if !ok {
			dst = append(dst[:from], valueMissing)
			continue
		}
		// A head is far shorter than 64 KiB.
		binary.BigEndian.PutUint16(dst[from+1:], uint16(len(dst)-from-3))
	}
	return dst
}

// appendNetwork appends the network that counts of the address of who asks.
func (l *rateLimit) appendNetwork(dst []byte, r *request) ([]byte, bool) {
	a := r.via.Client.Unmap().WithZone("")
	bits := l.rule.IPv6Prefix
	if a.Is4() {
		bits = l.rule.IPv4Prefix
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return dst, false // there is no address
	}
	b := p.Addr().As16()
	return append(dst, b[:]...), true
}

// tellLimited says in the log that somebody has come to be limited, for each rule now and
// then.
func (f *Front) tellLimited(r *request, a *askedLimit) {
	if !a.verdict.Began {
		return
	}
	a.by.tally.told.Do(func() {
		f.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "a client comes too often for a rate limit",
			slog.String("limit", a.by.rule.Name), slog.String("action", string(a.by.rule.Action)),
			slog.Any("network", address.Network(r.via.Client)), slog.Duration("for", a.verdict.Reset.Round(time.Millisecond)))
	})
}

// tellUnseen says in the log, for each rule now and then, that it wants to know a response
// that another proxy gets.
func (f *Front) tellUnseen(r *request) {
	for i := range r.limits {
		if l := r.limits[i].by; r.limits[i].later {
			l.tally.unseen.Do(func() {
				f.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "a rate limit does not count where another proxy asks: it is about responses, which that proxy gets",
					slog.String("limit", l.rule.Name))
			})
		}
	}
}

// countAnswered counts a request for rules that ask about the response, whose head is h.
func (f *Front) countAnswered(r *request, h *http1.Response) {
	described := false
	for i := range r.limits {
		a := &r.limits[i]
		if !a.later {
			continue
		}
		a.later = false
		if !described {
			described = true
			r.answered = r.answered[:0]
			for i := range h.Fields {
				if f := &h.Fields[i]; passesOn(h, f.Name) {
					r.answered = append(r.answered, [2]string{asText(f.Name), asText(f.Value)})
				}
			}
			r.facts.Response = expr.Response{Code: h.Code, Headers: &r.answered}
		}
		if r.isAbout(a.by.counting) {
			v := a.by.meter.Count(a.key, f.cfg.Clock())
			a.verdict.Remaining, a.verdict.Reset = v.Remaining, v.Reset
		}
	}
}
