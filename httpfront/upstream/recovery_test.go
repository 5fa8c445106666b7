package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
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
		if got := r.at(refresh, start.Add(after)); got != want {
			t.Errorf("after %v it is %d, want %d", after, got, want)
		}
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
			p.answered()
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

// TestTrialsOfASiteThatIsDown: one that does not answer gets nobody, and one that answers probes badly a visitor a minute.
func TestTrialsOfASiteThatIsDown(t *testing.T) {
	var r recovery
	r.observe(false, start)
	now := start.Add(time.Hour)
	if r.permit(0, 0, now) {
		t.Error("a site that does not answer gets a visitor")
	}
	r = recovery{}
	r.observe(false, start)
	r.answers = true
	now = start
	for i, after := range []time.Duration{trialEvery - 1, 1, trialEvery - 1, 1, time.Hour, 0} {
		if now = now.Add(after); r.permit(0, 1, now) != (i == 1 || i == 3 || i == 4) {
			t.Errorf("step %d, %v after it went down", i, now.Sub(start))
		}
	}
	r.observe(true, now)
	if r.answers || !r.permit(0, 0, now) || r.permit(0, 0, now) {
		t.Error("once it is back it does not grow as any other site")
	}
}

// TestDoubtsAreSettledByProbes: a site that answers with errors to all is out, one that does so to some, or with something else, is
// not, nor one that is checked, since checks say what is an error there.
func TestDoubtsAreSettledByProbes(t *testing.T) {
	for name, c := range map[string]struct {
		status, probe int
		checked       bool
		out           bool
	}{
		"503 to all":           {503, 503, false, true},
		"500 to visitors":      {500, 200, false, false},
		"500, and no HEAD":     {500, 501, false, false},
		"404 to all":           {404, 404, false, false},
		"200, and 503 at /":    {200, 503, false, false},
		"503, by a check well": {503, 503, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var probes atomic.Int64
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				probes.Add(1)
				w.WriteHeader(c.probe)
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
			p.ended(c.status, time.Millisecond, time.Now())
			if c.status < 500 {
				if p.doubted.Load() {
					t.Error("it is in doubt")
				}
				return
			}
			waitFor(t, "probes", func() bool { return probes.Load() >= 1 && (c.checked || !p.doubted.Load()) })
			if o := g.Status().Origins[0]; (o.State != "in") != c.out || g.Recovery(0) == Down != c.out {
				t.Errorf("after %d probes it is %s: %s", probes.Load(), o.State, o.Reason)
			}
		})
	}
}
