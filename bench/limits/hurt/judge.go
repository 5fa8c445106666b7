//go:build linux

package hurt

import (
	"fmt"
	"math"
	"strings"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// stages of a run, by periods of the clock.
const (
	before = iota
	meanwhile
	after
	stages
)

// most returns how many requests of a client reached the site in a period of each stage at
// most.
func (r *run) most(who string) (most [stages]int) {
	r.site.mu.Lock()
	defer r.site.mu.Unlock()
	for period, n := range r.site.came[who] {
		stage := before
		if !r.from.IsZero() && period >= r.site.number(r.from) {
			stage = meanwhile
		}
		if !r.to.IsZero() && period > r.site.number(r.to) {
			stage = after
		}
		most[stage] = max(most[stage], n)
	}
	return most
}

// excess is what the nodes say may pass beyond the limit at the rate of who comes too often.
func (r *run) excess() int { return int(math.Ceil(r.bound.DelaySeconds * greedyRate)) }

// allowed returns how many requests may reach the site in a period of each stage.
func (r *run) allowed() [stages]int {
	usual := r.limit() + r.excess()
	return [stages]int{usual, r.limits*r.limit() + r.excess(), usual}
}

// broken says what did not hold.
func (r *run) broken() (why []string) {
	allowed := r.allowed()
	for stage, n := range r.most(r.clients[0].name) {
		if n > allowed[stage] {
			why = append(why, fmt.Sprintf("%d reached the site in a period, and %d may", n, allowed[stage]))
		}
	}
	if r.clients[0].limited.Load() == 0 {
		why = append(why, "the limit was not felt")
	}
	for _, c := range r.clients[1:] {
		if n := c.limited.Load(); n > 0 {
			why = append(why, fmt.Sprintf("%d requests of %s were limited", n, c.name))
		}
	}
	for _, c := range r.clients {
		if n := c.odd.Load(); n > 0 {
			why = append(why, fmt.Sprintf("%d requests of %s got neither the site nor 429", n, c.name))
		}
	}
	return why
}

// values are those of the run's row.
func (r *run) values() measurement.Values {
	most, allowed := r.most(r.clients[0].name), r.allowed()
	v := measurement.Values{"broken": float64(len(r.broken())), "limit": float64(r.limit()), "before": float64(most[before]), "may": float64(allowed[before])}
	if r.hurt != nil {
		v["meanwhile"], v["may-meanwhile"], v["after"] = float64(most[meanwhile]), float64(allowed[meanwhile]), float64(most[after])
	}
	for _, c := range r.clients[1:] {
		v["honest"] += float64(c.sent.Load())
		v["honest-limited"] += float64(c.limited.Load())
	}
	return v
}

// name is that of the run's row.
func (r *run) name() string {
	how := r.injected
	if r.through == rig.Proxies && strings.Contains(how, "taken down") {
		how = r.through
	}
	return measurement.Row("fault", r.fault.name, "injected", how, "period", r.period.String())
}
