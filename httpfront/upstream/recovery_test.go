package upstream

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestRecovery follows a site through two outages: it is seen at once, nobody new goes before those
// who waited have asked, and another outage begins all of it again.
func TestRecovery(t *testing.T) {
	const refresh = 20 * time.Second
	var r recovery
	at := func(after time.Duration, want Recovery) {
		t.Helper()
		equal(t, after.String(), r.at(refresh, start.Add(after)), want)
	}
	r.observe(true, start)
	at(0, Up)
	r.observe(false, start.Add(time.Second))
	r.observe(false, start.Add(2*time.Second))
	at(time.Second, Down)
	at(time.Hour, Down)
	r.observe(true, start.Add(time.Hour))
	at(time.Hour, Returning)
	at(time.Hour+refresh-1, Returning)
	at(time.Hour+refresh, Growing)
	r.observe(false, start.Add(time.Hour+30*time.Second))
	at(time.Hour+31*time.Second, Down)
	r.observe(true, start.Add(time.Hour+33*time.Second)) // down for 3 s: nobody has asked later than that
	at(time.Hour+36*time.Second-1, Returning)
	at(time.Hour+36*time.Second, Growing)
	at(time.Hour+36*time.Second+growthSteps*growthStep-1, Growing)
	at(time.Hour+36*time.Second+growthSteps*growthStep, Up)
}

// TestAdmissionGrows asks for a permit a thousand times a second: there is one in the first second, and from
// step to step no more than twice as many, also where nobody has asked for a while.
func TestAdmissionGrows(t *testing.T) {
	const refresh = 20 * time.Second
	for _, idle := range []time.Duration{0, 7 * time.Second} {
		r := recovery{down: time.Second, back: start}
		begin := start.Add(time.Second)
		given := map[int]int{}
		for ms := idle.Milliseconds(); ms < (6 * growthStep).Milliseconds(); ms++ {
			now := begin.Add(time.Duration(ms) * time.Millisecond)
			if r.permit(refresh, 0, now) {
				given[int(now.Sub(begin)/growthStep)]++
			}
		}
		for step := int(idle/growthStep) + 1; step < 6; step++ {
			perStep := 5 << step
			if n := given[step]; n < perStep*9/10 || n > perStep+1<<step {
				t.Errorf("idle for %v: %d permits in step %d, want %d", idle, n, step, perStep)
			}
		}
		if n := given[0]; idle == 0 && (n < 5 || n > 6) {
			t.Errorf("%d permits in the first step, want one a second", n)
		}
	}
}

// TestPermitsAreForThoseWhoWaited: somebody new gets one only when those who waited have left all of them.
func TestPermitsAreForThoseWhoWaited(t *testing.T) {
	now := start.Add(3*growthStep + growthStep/2) // eight a second
	r := recovery{back: start, permits: 8, filled: now}
	alone, late, waited := r.permit(0, 1, now), r.permit(0, 1, now), r.permit(0, 0, now)
	if !alone || late || !waited {
		t.Errorf("somebody new gets one: %v, and another that those who waited may come for: %v; somebody who waited: %v", alone, late, waited)
	}
}

// TestGroupKnowsThatItIsDown: it is with the last origin that goes out, and not before.
func TestGroupKnowsThatItIsDown(t *testing.T) {
	g, _ := open(t, Config{Origins: parsed("http://127.0.0.1:1", "http://127.0.0.1:2"), Passive: Passive{Failures: 1}})
	failure := errors.New("no answer")
	for _, step := range []struct {
		origin int
		err    error
		want   Recovery
	}{{0, failure, Up}, {1, failure, Down}, {1, nil, Growing}} {
		if p := g.pools[step.origin]; step.err != nil {
			p.failed(step.err, time.Now())
		} else {
			p.answered(200, nil)
		}
		if g.Recovery(0) != step.want || g.Recovery(time.Hour) == Down && step.want != Down {
			t.Errorf("after %v of origin %d it is %d, want %d", step.err, step.origin, g.Recovery(0), step.want)
		}
	}
	if !g.Permit(0, false) || g.Permit(0, false) {
		t.Error("want one permit in the first second")
	}
	if g.Unused(); !g.Permit(0, false) {
		t.Error("a permit that was not used is lost")
	}
}

// TestTrialsOfASiteThatIsDown: one that takes no connection gets nobody, and one where probes go badly a visitor a minute.
func TestTrialsOfASiteThatIsDown(t *testing.T) {
	var r recovery
	r.observe(false, start)
	now := start.Add(time.Hour)
	if r.permit(0, 0, now) {
		t.Error("a site that takes no connection gets a visitor")
	}
	r = recovery{}
	r.observe(false, start)
	r.takes = true
	now = start
	for i, after := range []time.Duration{trialEvery - 1, 1, trialEvery - 1, 1, time.Hour, 0} {
		if now = now.Add(after); r.permit(0, 1, now) != (i == 1 || i == 3 || i == 4) {
			t.Errorf("step %d, %v after it went down", i, now.Sub(start))
		}
	}
	r.observe(true, now)
	if r.takes || !r.permit(0, 0, now) || r.permit(0, 0, now) {
		t.Error("once it is back it does not grow as any other site")
	}
}

// TestWhichProbesSayThatASiteTakesConnections: all that had one, whatever became of them.
func TestWhichProbesSayThatASiteTakesConnections(t *testing.T) {
	silent := must(net.Listen("tcp", "127.0.0.1:0"))
	gone := silent.Addr().String()
	silent.Close()
	hangsUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer hangsUp.Close()
	for address, want := range map[string]bool{"http://" + gone: false, hangsUp.URL: true, "https" + strings.TrimPrefix(hangsUp.URL, "http"): true} {
		g, _ := open(t, Config{Origins: parsed(address), Passive: Passive{Failures: 1}})
		p := g.pools[0]
		p.failed(errors.New("no answer"), time.Now())
		err := g.probeOnce(t.Context(), g.checking(p), p)
		if p.notice(err); g.guard.state.takes != want {
			t.Errorf("%v says that it takes connections: %v, want %v", err, g.guard.state.takes, want)
		}
	}
}

// TestDoubtsAreSettledByProbes: a site that answers with errors to all is out, one that does so to some, or with something else, is
// not, nor one where probes go badly whatever it does, nor one that is checked, since checks say what is an error there.
func TestDoubtsAreSettledByProbes(t *testing.T) {
	for name, c := range map[string]struct {
		status, probe int
		calm          int // what probes had before, when visitors had 200; 0: none had come
		checked       bool
		out           bool
	}{
		"503 to all":                    {503, 503, 0, false, true},
		"503 to all, after a well time": {503, 503, 404, false, true},
		"500 to visitors":               {500, 200, 0, false, false},
		"500, and no HEAD":              {500, 501, 0, false, false},
		"500, and 503 at / always":      {500, 503, 503, false, false},
		"404 to all":                    {404, 404, 0, false, false},
		"200, and 503 at /":             {200, 503, 0, false, false},
		"503, by a check well":          {503, 503, 0, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var probes, answer atomic.Int64
			answer.Store(int64(cmp.Or(c.calm, c.probe)))
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				probes.Add(1)
				if c.calm != 0 && r.Host != "shop.example" {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(int(answer.Load()))
			}))
			defer site.Close()
			cfg := Config{Origins: parsed(site.URL)}
			if c.checked {
				cfg.Check = &Check{Path: "/", Status: []StatusRange{{200, 599}}}
			}
			g, _ := open(t, cfg)
			ctx, stop := context.WithCancel(t.Context())
			var run sync.WaitGroup
			run.Go(func() { g.Run(ctx) })
			defer run.Wait()
			defer stop()
			p := g.pools[0]
			settled := func() bool { return probes.Load() >= 1 && (c.checked || !p.probed.Load()) }
			if c.calm != 0 {
				for range enough {
					p.ended(200, []byte("shop.example"), time.Millisecond, time.Now())
				}
				waitFor(t, "probes of a site that is well", settled)
				answer.Store(int64(c.probe))
			}
			for range enough {
				p.ended(c.status, nil, time.Millisecond, time.Now())
			}
			waitFor(t, "probes", settled)
			if o := g.Status().Origins[0]; (o.State != "in") != c.out || g.Recovery(0) == Down != c.out {
				t.Errorf("after %d probes it is %s: %s", probes.Load(), o.State, o.Reason)
			}
		})
	}
}

// TestWhoWaitsLongRaisesADoubt: clients that leave an origin that does not answer tell of it, and those who do so at once do not.
func TestWhoWaitsLongRaisesADoubt(t *testing.T) {
	ln := must(net.Listen("tcp", "127.0.0.1:0")) // which accepts nobody
	defer ln.Close()
	g, _ := open(t, Config{Origins: parsed("http://" + ln.Addr().String())})
	p, now := g.pools[0], time.Now()
	c := must(g.Acquire(&Tried{}, Request))
	defer c.Discard()
	c.waits.Store(now.Add(-lateAfter).UnixNano())
	for _, step := range []struct {
		what   string
		do     func()
		probed bool
		slow   int // among the recent requests, but for the one that is under way
	}{
		{"one who left at once", func() { p.left(now.Add(-patience+1), now) }, false, 0},
		{"one who had waited", func() { p.left(now.Add(-patience), now) }, false, 0}, // what probes say is not known yet
		{"an answer", func() { p.answered(200, nil) }, false, 0},
		{"many", func() {
			for range enough {
				p.answered(200, nil)
			}
		}, true, 0},
		{"a good probe", func() { p.notice(nil) }, false, 0},
		{"one more who had waited", func() { p.left(now.Add(-patience), now) }, true, 0},
		{"an answer again", func() { p.answered(200, nil) }, false, 0},
		{"one who waits", func() { p.lookForLate(now) }, true, 0},
		{"another answer", func() { p.answered(200, nil) }, false, 0},
		{"one who had waited long", func() { p.left(now.Add(-lateAfter), now) }, true, 1},
	} {
		step.do()
		if n := int(p.recent.figures(now, nil).requests); p.probed.Load() != step.probed || n != step.slow {
			t.Errorf("after %s: in doubt %v, want %v; %d slow requests, want %d", step.what, p.probed.Load(), step.probed, n, step.slow)
		}
	}
	h := health{served: enough, probes: mute}
	if h.wait(now); h.isProbed() {
		t.Error("probes that say nothing are sent because of a request that waits")
	}
}
