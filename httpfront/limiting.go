package httpfront

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/ropeline/ropeline/httpfront/gate/expr"
	"github.com/ropeline/ropeline/node/limit"
)

// Meter counts for one rate limit rule. Any number of goroutines may use it, and it must
// not block.
type Meter interface {
	// Key returns what requests with these values of the characteristics count under. It
	// does not keep values.
	Key(values []byte) limit.Key
	// Take counts a request, unless it is limited.
	Take(k limit.Key, now time.Time) limit.Verdict
	// Peek says whether a request would be limited, and counts nothing.
	Peek(k limit.Key, now time.Time) limit.Verdict
	// Check says whether a request is limited that does not count.
	Check(k limit.Key, now time.Time) limit.Verdict
	// Count counts a request that was let pass.
	Count(k limit.Key, now time.Time) limit.Verdict
}

// rateLimit is one rule that is not disabled.
type rateLimit struct {
	rule       limit.Rule
	meter      Meter
	expression *expr.Expression
	counting   *expr.Expression // nil: all that expression is true of are counted
	values     []characteristic
	steps      int    // that a request may cost; see expr.Expression.Steps
	policy     string // member of the field RateLimit-Policy

	tally *limitTally // lasts as long as the rule is followed
}

// limitTally is what a rule has done at this node.
type limitTally struct {
	limited atomic.Uint64
	told    rate.Sometimes // keeps a flood from filling the log
	unseen  rate.Sometimes // the same, of requests whose responses are not seen
}

func newLimitTally() *limitTally {
	return &limitTally{told: rate.Sometimes{Interval: warnEvery}, unseen: rate.Sometimes{Interval: warnEvery}}
}

// characteristic is one part of what counts together.
type characteristic struct {
	value   *expr.Value // nil: the visitor's id
	visitor bool
}

// LimitTally is what a rate limit rule has done at this node since it was first followed.
type LimitTally struct {
	ID      limit.ID
	Name    string
	Action  limit.Action
	Limited uint64 // requests
}

// FollowLimits holds requests against these rules from now on, and against no others.
// meter returns what counts for a rule; rules for which it returns nil are passed over, as
// disabled ones are. Rules that the front cannot use are in the error and not followed. It
// may be called while requests run, from one goroutine at a time.
func (f *Front) FollowLimits(rules []limit.Rule, meter func(limit.ID) Meter) error {
	type counted struct { // what a tally is of
		rule limit.ID
		does limit.Action
	}
	was := map[counted]*limitTally{}
	for _, l := range f.limitRules() {
		was[counted{l.rule.ID, l.rule.Action}] = l.tally
	}
	var all []*rateLimit
	var errs []error
	for i := range rules {
		if rules[i].Disabled {
			continue
		}
		m := meter(rules[i].ID)
		if m == nil {
			continue
		}
		l, err := newRateLimit(&rules[i], f.cfg.Lists)
		if err != nil {
			errs = append(errs, fmt.Errorf("http front: rate limit %q: %w", rules[i].Name, err))
			continue
		}
		l.meter, l.tally = m, cmp.Or(was[counted{l.rule.ID, l.rule.Action}], newLimitTally())
		all = append(all, l)
	}
	f.limits.Store(&all)
	return errors.Join(errs...)
}

// LimitTallies returns what the rules have done, in their order. Any goroutine may call it.
func (f *Front) LimitTallies() []LimitTally {
	all := []LimitTally{}
	for _, l := range f.limitRules() {
		all = append(all, LimitTally{l.rule.ID, l.rule.Name, l.rule.Action, l.tally.limited.Load()})
	}
	return all
}

// CheckLimit reports every setting of a rate limit rule that the front cannot use, joined;
// each part is a *room.FieldError. Else it returns how many steps the rule costs a request, of which
// catalog.MaxLimitSteps are there for all rules. lists are those that expressions may name.
func CheckLimit(r *limit.Rule, lists expr.Lists) (steps int, err error) {
	l, err := newRateLimit(r, lists)
	if err != nil {
		return 0, err
	}
	return l.steps, nil
}

func newRateLimit(r *limit.Rule, lists expr.Lists) (*rateLimit, error) {
	l := &rateLimit{rule: r.Clone()}
	var errs []error
	fail := func(field string, err error) { errs = append(errs, expressionError(field, err)) }
	var err error
	if l.expression, err = expr.Compile(r.Expression, lists); err != nil {
		fail("expression", err)
	}
	if r.CountingExpression != "" {
		if l.counting, err = expr.CompileCounting(r.CountingExpression, lists); err != nil {
			fail("counting-expression", err)
		}
	}
	for i, c := range r.Characteristics {
		if c == limit.VisitorID {
			l.values = append(l.values, characteristic{visitor: true})
			continue
		}
		v, err := expr.CompileValue(c)
		if err != nil {
			fail(fmt.Sprintf("characteristics[%d]", i), err)
			continue
		}
		l.steps += v.Steps()
		l.values = append(l.values, characteristic{value: v})
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	l.steps += l.expression.Steps()
	if l.counting != nil {
		l.steps += l.counting.Steps()
	}
	l.policy = fmt.Sprintf("%q;q=%d;w=%d", r.Name, r.RequestsPerPeriod, int(r.Period.Seconds()))
	return l, nil
}
