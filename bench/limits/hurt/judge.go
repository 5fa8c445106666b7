//go:build linux

package hurt

import (
	"cmp"
	"fmt"
	"math"
	"strings"

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

const head = "| fault | injected how | limit | reached the site in a period at most: before, meanwhile, after | may at most | others, who keep to the limit: requests, limited | verdict |\n|---|---|---|---|---|---|---|\n"

// row returns the line of a markdown table.
func (r *run) row() string {
	most, allowed := r.most(r.clients[0].name), r.allowed()
	reached, may := fmt.Sprint(most[before]), fmt.Sprint(allowed[before])
	if r.hurt != nil {
		reached = fmt.Sprintf("%d, %d, %d", most[before], most[meanwhile], most[after])
		may = fmt.Sprintf("%d, %d, %d", allowed[before], allowed[meanwhile], allowed[after])
	}
	how := cmp.Or(r.injected, "–")
	if r.through == rig.Proxies && strings.Contains(r.injected, "taken down") {
		how = r.through
	}
	var sent, limited int64
	for _, c := range r.clients[1:] {
		sent, limited = sent+c.sent.Load(), limited+c.limited.Load()
	}
	verdict := "held"
	if why := r.broken(); len(why) > 0 {
		verdict = "**broken**: " + strings.Join(why, "; ")
	}
	return fmt.Sprintf("| %s | %s | %d in %v | %s | %s | %d, %d | %s |\n", r.name, how, r.limit(), r.period, reached, may, sent, limited, verdict)
}
