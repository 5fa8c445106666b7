//go:build linux

package hurt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/node"
)

const (
	perSecond   = 10 // requests that the limit allows
	greedyRate  = 60 // requests a second of who comes too often
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
	through string
	bound   node.LimitBound
	site    *site
	clients []*client
	from    time.Time // when the fault began
	to      time.Time // when it was over, and a period had passed since
}

func (f *fault) limit() int { return perSecond * int(f.period.Seconds()) }

// network returns where the mesh lives, and how it is called.
func (f *fault) network(o options) (rig.Network, string, error) {
	if !f.shaped && !o.loopback {
		n, err := rig.NewNamespaces()
		if err == nil {
			return n, f.injected, nil
		}
		if !errors.Is(err, rig.ErrCannot) {
			return nil, "", err
		}
	}
	return rig.NewLoopback(1), "proxies", nil
}

func execute(ctx context.Context, f fault, o options) (_ *run, err error) {
	dir, err := os.MkdirTemp(o.dir, "mesh-")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "ropeline.yaml")
	if err := os.WriteFile(config, []byte(f.config()), 0o600); err != nil {
		return nil, err
	}
	network, through, err := f.network(o)
	if err != nil {
		return nil, err
	}
	r := &run{fault: f, ctx: ctx, through: through, site: newSite(f.period)}
	r.mesh, err = rig.NewMesh(rig.Config{
		Binary: o.binary, Dir: dir, Names: []string{"a1", "a2", "b1", "b2", "c1", "c2"}, Args: []string{"--config", config}, Origin: r.site,
	}, network)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.mesh.Close()) }()
	for name, arg := range f.args {
		r.mesh.Node(name).Args = []string{arg}
	}
	if err := r.mesh.Start(ctx); err != nil {
		return nil, err
	}
	for _, n := range r.mesh.Nodes {
		if err := n.Await(ctx, 20*time.Second, "counts for the rule, with all others", func(s node.Status) bool {
			return len(s.Limits.Rules) == 1 && s.Limits.Rules[0].Bound.Nodes == len(r.mesh.Nodes)
		}); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(o.out, "%s: begun, with a period of %v\n", f.name, f.period)
	return r, r.suffer()
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

// suffer has clients come while the mesh is hurt.
func (r *run) suffer() error {
	ctx, stop := context.WithCancel(r.ctx)
	defer stop()
	var wg sync.WaitGroup
	r.clients = []*client{
		newClient("greedy", greedyRate, r.mesh.Net, r.mesh.Nodes...),
		newClient("honest", honestRate, r.mesh.Net, r.mesh.Nodes...),
		newClient("honest at one node", honestRate, r.mesh.Net, r.mesh.Node("b2")),
	}
	for _, c := range r.clients {
		wg.Go(func() { c.come(ctx) })
	}
	err := r.script()
	stop()
	wg.Wait()
	return err
}

func (r *run) script() error {
	if err := r.sleep(2 * r.period); err != nil {
		return err
	}
	s, err := r.mesh.Nodes[0].Status(r.ctx)
	if err != nil {
		return err
	}
	r.bound = s.Limits.Rules[0].Bound
	if r.hurt == nil {
		return r.sleep(2 * r.period)
	}
	r.from = time.Now()
	if err := r.hurt(r); err != nil {
		return err
	}
	r.to = time.Now().Add(r.period)
	return r.sleep(3 * r.period)
}

func (r *run) sleep(d time.Duration) error {
	select {
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	case <-time.After(d):
		return nil
	}
}
