package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Recovery is how far a site is that was down: whether it can take new visitors.
type Recovery uint8

const (
	Up        Recovery = iota // it was not down lately
	Down                      // no origin is healthy
	Returning                 // it is back, and those who waited elsewhere or unseen are counted first
	Growing                   // it is back, and takes more new visitors with each step
)

// The rate at which new visitors reach a site that is back: one a second, and twice as many after
// each step, until nothing bounds them any more. Fewer steps: caches that are still empty and
// pools that are still closed meet a crowd, and the site falls over again.
const (
	growthStep  = 5 * time.Second
	growthSteps = 12
)

// recovery is the state of that. The zero value is a site that has never been down.
//
//	up ──no origin is healthy──▶ down ──one is──▶ returning ──▶ growing ──▶ up
//	                               ▲                  │            │
//	                               └── none is again ─┴────────────┘
type recovery struct {
	downFrom time.Time     // zero: it is not down
	down     time.Duration // how long it was
	back     time.Time     // zero: it was not down, or is
	takes    bool          // it is down, and takes connections
	permits  float64       // for new visitors, while growing, or down and taking connections
	filled   time.Time     // when permits were added last
}

// observe takes note of whether an origin of the site is healthy.
func (r *recovery) observe(healthy bool, now time.Time) {
	switch {
	case !healthy && r.downFrom.IsZero():
		*r = recovery{downFrom: now, filled: now}
	case healthy && !r.downFrom.IsZero():
		*r = recovery{down: now.Sub(r.downFrom), back: now}
	}
}

// at says how far the site is. refresh is the interval in which visitors ask: nobody new goes
// before everybody has asked once who waited, which takes no longer than the site was down.
func (r *recovery) at(refresh time.Duration, now time.Time) Recovery {
	if !r.downFrom.IsZero() {
		return Down
	}
	if r.back.IsZero() {
		return Up
	}
	switch age := now.Sub(r.back) - min(refresh, r.down); {
	case age < 0:
		return Returning
	case age < growthSteps*growthStep:
		return Growing
	}
	return Up
}

// trialEvery is how often a site that is down, and takes connections, gets a new visitor: what becomes of a probe may be what
// always does, and where nobody is on the site nothing else could show that it is well.
const trialEvery = time.Minute

// permit takes a permit for a new visitor while the site is growing, or down and taking connections, and leaves at least spare of them.
func (r *recovery) permit(refresh time.Duration, spare float64, now time.Time) bool {
	begin := r.back.Add(min(refresh, r.down))
	rate := float64(int64(1) << min(max(now.Sub(begin), 0)/growthStep, growthSteps))
	switch {
	case r.takes:
		rate = 1 / trialEvery.Seconds()
	case !r.downFrom.IsZero():
		return false
	case r.filled.Before(begin):
		r.permits, r.filled = 1, begin
	}
	most := max(rate, 1)
	r.permits = min(most, r.permits+rate*max(now.Sub(r.filled), 0).Seconds())
	r.filled = now
	if r.permits < 1+spare*(most-1) {
		return false
	}
	r.permits--
	return true
}

// guard is recovery for many goroutines. A site that was not down lately costs one atomic load.
type guard struct {
	watching atomic.Bool // recovery has something to say

	mu    sync.Mutex // guards the following
	state recovery
}

func (g *guard) observe(healthy bool, now time.Time) {
	if healthy && !g.watching.Load() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state.observe(healthy, now)
	g.watching.Store(true)
}

// Recovery says how far the site is. refresh is the interval in which waiting visitors ask.
func (g *Group) Recovery(refresh time.Duration) Recovery {
	if !g.guard.watching.Load() {
		return Up
	}
	g.guard.mu.Lock()
	defer g.guard.mu.Unlock()
	at := g.guard.state.at(refresh, time.Now())
	if at == Up {
		g.guard.state = recovery{}
		g.guard.watching.Store(false)
	}
	return at
}

// Permit reports whether a site that is Growing, or Down, takes one more visitor now, and counts it. Those
// who are new may have only what visitors who have waited leave.
func (g *Group) Permit(refresh time.Duration, isNew bool) bool {
	spare := 0.0
	if isNew {
		spare = 1
	}
	g.guard.mu.Lock()
	defer g.guard.mu.Unlock()
	return g.guard.state.permit(refresh, spare, time.Now())
}

// Unused gives a permit back whose visitor was not let in.
func (g *Group) Unused() {
	g.guard.mu.Lock()
	defer g.guard.mu.Unlock()
	g.guard.state.permits++ // bounded when the next one is taken
}

// isHealthyLocked reports whether an origin is in.
func (g *Group) isHealthyLocked() bool {
	return slices.ContainsFunc(g.members, func(m member) bool { return !m.isOut() })
}

// Probes of origins that nobody checks begin probeFirst after the site went down, with twice as long from each
// to the next, up to the ejection: then they are one request per origin and node in ten seconds, by default, and
// no burden to a site that struggles. While there is a doubt about one they come every probeDoubt, so that few visitors
// meet a site that is down, and so they do to find out whether they go well where requests do.
const (
	probeFirst = time.Second
	probeDoubt = 250 * time.Millisecond
)

// probeAgain asks the origin of p, while all are out, whether it is back, and while health wants to know, whether it is well,
// until ctx ends. No visitor may come any more by whom that would be seen.
func (g *Group) probeAgain(ctx context.Context, p *pool) {
	transport := g.checking(p)
	defer transport.CloseIdleConnections()
	for wait := time.Duration(0); ; {
		switch {
		case g.guard.isDown():
			wait = min(max(2*wait, probeFirst), max(probeFirst, g.cfg.Passive.Ejection))
		case p.probed.Load():
			wait = probeDoubt
		default:
			wait = 0
			select {
			case <-ctx.Done():
				return
			case <-p.woken:
			case <-time.After(lateAfter):
				p.lookForLate(time.Now())
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(jittered(wait, rand.Float64())):
		}
		err := g.probeOnce(ctx, transport, p)
		if ctx.Err() != nil {
			return
		}
		p.notice(err)
	}
}

// notice takes note of a probe of p's origin.
func (p *pool) notice(failure error) {
	g := p.group
	if failure != nil {
		p.note(failure.Error(), time.Now())
		_, refused := errors.AsType[dialError](failure)
		g.guard.mu.Lock()
		g.guard.state.takes = !refused && !g.guard.state.downFrom.IsZero()
		g.guard.mu.Unlock()
	}
	bad := 0
	if late, ok := errors.AsType[net.Error](failure); ok && late.Timeout() {
		bad = aLostProbe
	} else if failure != nil {
		bad = aBadProbe
	}
	g.observe(p.index, failure, func(h *health, now time.Time) change { return h.probe(&g.cfg.Passive, bad, now) })
}

func (g *guard) isDown() bool {
	if !g.watching.Load() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.state.downFrom.IsZero()
}
