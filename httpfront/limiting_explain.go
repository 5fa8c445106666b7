package httpfront

import (
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
)

// LimitTold is what a rate limit says of a request.
type LimitTold struct {
	Name     string  `json:"name"`
	Action   string  `json:"action"` // of requests beyond it
	Scope    string  `json:"scope"`
	Requests int     `json:"requests_per_period"`
	Period   float64 `json:"period_seconds"`

	Limited   bool    `json:"limited"` // the request would be beyond it
	Remaining int     `json:"remaining"`
	Reset     float64 `json:"reset_seconds"` // until the period ends, or with nothing remaining until the limit allows a request

	// Estimate is left out where this node knows nothing of the key; the next three are 0 then.
	Estimate *float64 `json:"estimate,omitempty"` // requests within the last period
	Previous int      `json:"previous"`           // of the period before
	Current  int      `json:"current"`            // of this one
	Elapsed  float64  `json:"elapsed_seconds"`

	// Counted says when the request is counted: "always", "if" the counting expression is
	// true of it, which it is, "not", or "later", by the response.
	Counted string     `json:"counted"`
	Bound   LimitBound `json:"bound"`
}

// LimitBound is by how much a rate limit can be exceeded within a period.
type LimitBound struct {
	Delay float64 `json:"delay_seconds"` // so much of what comes may be more
	Nodes int     `json:"nodes"`         // that count together
	Most  int     `json:"most"`          // requests, whatever the rate
}

// reporter is a Meter that tells what it knows.
type reporter interface {
	Report(k limit.Key, counts bool, now time.Time) (rep limit.Report, ok bool)
}

// explainLimits says what the rate limits would say of r, and counts nothing.
func (f *Front) explainLimits(x *Explained, r *request, visitor node.VisitorID, dryRun bool, now time.Time) {
	rules := f.limitRules()
	if len(rules) == 0 {
		return
	}
	f.describe(r)
	for _, l := range rules {
		if !r.isAbout(l.expression) {
			continue
		}
		told := f.explainLimit(l, r, visitor, now)
		x.Limits = append(x.Limits, told)
		if told.Limited && (l.rule.Action == limit.Block || l.rule.Action == limit.Queue && !dryRun) {
			x.Passes = false
			return
		}
	}
}

func (f *Front) explainLimit(l *rateLimit, r *request, visitor node.VisitorID, now time.Time) LimitTold {
	k := l.meter.Key(l.appendValues(nil, r, visitor))
	told := LimitTold{
		Name: l.rule.Name, Action: string(l.rule.Action), Scope: string(l.rule.Scope), Requests: l.rule.RequestsPerPeriod, Period: l.rule.Period.Seconds(),
		Remaining: l.rule.RequestsPerPeriod, Reset: l.rule.Period.Seconds(), Counted: "always",
	}
	switch {
	case l.counting == nil:
	case l.counting.Answers():
		told.Counted = "later"
	case r.isAbout(l.counting):
		told.Counted = "if"
	default:
		told.Counted = "not"
	}
	if m, ok := l.meter.(reporter); ok {
		if rep, known := m.Report(k, told.Counted != "not", now); known {
			v := rep.Verdict
			told.Limited, told.Remaining, told.Reset = v.Limited, v.Remaining, v.Reset.Seconds()
			told.Estimate, told.Previous, told.Current, told.Elapsed = &rep.Estimate, rep.Previous, rep.Current, rep.Elapsed.Duration().Seconds()
		}
	}
	if f.cfg.LimitBound != nil {
		b := f.cfg.LimitBound(&l.rule)
		told.Bound = LimitBound{b.Delay.Seconds(), b.Nodes, b.Most}
	}
	return told
}
