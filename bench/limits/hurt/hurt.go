//go:build linux

// Package hurt has clients come to a mesh of real ropeline processes, three sites of two
// nodes, with a rate limit over all of them, and hurts it meanwhile. The site behind the mesh
// counts what reaches it. As root it cuts real links.
package hurt

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/node"
)

// Entry is the measurement.
func Entry() measurement.Entry {
	return measurement.Entry{
		Name: "limit-faults", Page: "rate-limits-measured.md",
		Question: "What passes a rate limit of a mesh that is hurt?",
		Method:   "Six real processes in three sites, a limit over the mesh, one client that comes far too often and others that keep to it; the site counts what reaches it.",
		Units: []measurement.Unit{
			{Name: "broken", Meaning: "what else came of it than has to", Better: "lower", Exact: true},
			measurement.InAll,
			{Name: "limit", Meaning: "requests in a period that the limit allows"},
			{Name: "before", Meaning: "the most requests of the client that asks too often that reached the site in a period before the fault"},
			{Name: "meanwhile", Meaning: "the same from its beginning to a period after its end"},
			{Name: "after", Meaning: "the same after that"},
			{Name: "may", Meaning: "how many may before and after: the limit, and what comes until all have heard of a request"},
			{Name: "may-meanwhile", Meaning: "how many may meanwhile: the limit for each part of the mesh that counts for itself"},
			{Name: "honest", Meaning: "requests of others, who keep to the limit"},
			{Name: "honest-limited", Meaning: "of these, limited", Better: "lower", Exact: true},
		},
		Bounds: []measurement.Bound{measurement.NothingBroken},
		Quick:  []string{"run=a node killed", "period=4s"},
		New: func(f *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			var o options
			only := f.String("run", "", "only faults whose names contain this text")
			f.DurationVar(&o.period, "period", 10*time.Second, "period of the limit in which faults are tried")
			return func(ctx context.Context, r *measurement.Run) error { return measure(ctx, o, *only, r) }
		},
	}
}

func measure(ctx context.Context, o options, only string, run *measurement.Run) (err error) {
	if o.dir, err = os.MkdirTemp("", "ropeline-hurt-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	if o.binary, err = rig.Built(ctx, rig.Ropeline, "faults"); err != nil {
		return err
	}
	o.out = run.Log
	sum := 0
	for _, f := range faults(o.period) {
		if !strings.Contains(f.name, only) {
			continue
		}
		r, err := execute(ctx, f, o)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		run.Tell("%s: %v", f.name, r.values())
		run.Add(r.name(), r.values())
		for _, why := range r.broken() {
			run.Note("**%s is broken**: %s", f.name, why)
			sum++
		}
	}
	return run.Broken(sum)
}

const (
	perSecond   = 10 // requests that the limit allows
	greedyRate  = 60 // requests a second of the client that asks too often
	honestRate  = 8  // of who keeps to the limit
	limitName   = "clients"
	clientField = "X-Client"
)

type options struct {
	binary, dir string
	loopback    bool
	period      time.Duration
	out         io.Writer
}

// run is one mesh, and who comes to it.
type run struct {
	fault
	ctx     context.Context
	mesh    *rig.Mesh
	through string // as rig.NewNetwork has it
	bound   node.LimitBound
	site    *site
	clients []*client
	from    time.Time // when the fault began
	to      time.Time // when it was over, and a period had passed since
}

func (f *fault) limit() int { return perSecond * int(f.period.Seconds()) }

// execute has clients come to a mesh while it is hurt.
func execute(ctx context.Context, f fault, o options) (*run, error) {
	r := &run{fault: f, ctx: ctx, site: newSite(f.period)}
	return r, rig.Try(func() {
		dir := rig.Got(os.MkdirTemp(o.dir, "mesh-"))
		config := filepath.Join(dir, "ropeline.yaml")
		rig.Must(os.WriteFile(config, []byte(f.config()), 0o600))
		network, through, err := rig.NewNetwork(!f.shaped && !o.loopback, 1, o.out)
		rig.Must(err)
		r.through = through
		r.mesh = rig.Got(rig.NewMesh(rig.Config{
			Binary: o.binary, Dir: dir, Names: []string{"a1", "a2", "b1", "b2", "c1", "c2"}, Args: []string{"--config", config}, Origin: r.site,
		}, network))
		defer func() { rig.Must(r.mesh.Close()) }()
		for name, arg := range f.args {
			r.mesh.Node(name).Args = []string{arg}
		}
		rig.Must(r.mesh.Start(ctx))
		r.clients = []*client{
			newClient("greedy", greedyRate, r.mesh.Net, r.mesh.Nodes...),
			newClient("honest", honestRate, r.mesh.Net, r.mesh.Nodes...),
			newClient("honest at one node", honestRate, r.mesh.Net, r.mesh.Node("b2")),
		}
		r.script()
	})
}

func (f *fault) config() string {
	return fmt.Sprintf(`
total-active-users: 100000
new-users-per-minute: 1000000
suspended: true
rate-limits:
  - name: %s
    expression: "true"
    characteristics: ['http.request.headers["x-client"]']
    period: %s
    requests-per-period: %d
`, limitName, f.period, f.limit())
}

// script has clients come while the mesh is hurt.
func (r *run) script() {
	for _, n := range r.mesh.Nodes {
		rig.Must(n.Await(r.ctx, 20*time.Second, "counts for the rule, with all others", func(s node.Status) bool {
			return len(s.Limits.Rules) == 1 && s.Limits.Rules[0].Bound.Nodes == len(r.mesh.Nodes)
		}))
	}
	ctx, stop := context.WithCancel(r.ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for _, c := range r.clients {
		wg.Go(func() { c.come(ctx) })
	}
	r.sleep(2 * r.period)
	r.bound = rig.Got(r.mesh.Nodes[0].Status(r.ctx)).Limits.Rules[0].Bound
	if r.hurt == nil {
		r.sleep(2 * r.period)
		return
	}
	r.from = time.Now()
	r.hurt(r)
	r.to = time.Now().Add(r.period)
	r.sleep(3 * r.period)
}

func (r *run) sleep(d time.Duration) { rig.Must(rig.Sleep(r.ctx, d)) }

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

// excess is what the nodes say may pass beyond the limit at the rate of the client that asks too often.
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
