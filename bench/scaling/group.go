//go:build linux

package scaling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/transport"
)

// settings are those of all nodes: a room whose visitors are let in at once, and one in which all
// of them wait.
const settings = `
total-active-users: 10000000
new-users-per-minute: 10000000
session-duration: 1m
max-connections-per-address: 100000
max-requests-per-connection: 1048576
rooms:
  - room: open
    path: /open
    cookie-suffix: open
  - room: closed
    path: /closed
    cookie-suffix: closed
    queue-all: true
    refresh-interval: 3s
`

// group is all processes, in meshes of the same size.
type group struct {
	dir   string
	nodes []*process
}

// process is one node.
type process struct {
	*rig.Process
	http, admin, mesh string
}

// startGroup starts all processes and waits until every mesh is whole. What it returns has to be
// stopped, after an error too.
func startGroup(ctx context.Context, binary string, size int, site string) (*group, error) {
	g := &group{}
	var err error
	if g.dir, err = os.MkdirTemp("", "scaling"); err != nil {
		return g, err
	}
	file := filepath.Join(g.dir, "ropeline.yaml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		return g, err
	}
	secret := filepath.Join(g.dir, "secret.key")
	if err := os.WriteFile(secret, []byte(transport.NewSecret().Text()+"\n"), 0o600); err != nil {
		return g, err
	}
	for i := range processes {
		// The first of each mesh makes it, and is waited for.
		first := i / size * size
		args := []string{"run", "--bootstrap-nodes", fmt.Sprint("node-", first), "--config", file, "--secret-file", secret, "--origin", site, "--log-level", "warn"}
		if first != i {
			args = append(args, "--join", g.nodes[first].mesh)
		}
		p, err := startProcess(ctx, binary, filepath.Join(g.dir, fmt.Sprint("node-", i)), args)
		if err != nil {
			return g, err
		}
		g.nodes = append(g.nodes, p)
		if i%size == 0 {
			if err := p.await(ctx, 0); err != nil { // who joins shall find somebody
				return g, err
			}
		}
	}
	for _, p := range g.nodes {
		if err := p.await(ctx, size-1); err != nil {
			return g, err
		}
	}
	return g, sleep(ctx, 5*time.Second) // rights and counters have settled
}

func startProcess(ctx context.Context, binary, dir string, args []string) (*process, error) {
	p := &process{}
	for _, at := range []*string{&p.http, &p.admin, &p.mesh} {
		var err error
		if *at, err = rig.Free(); err != nil {
			return nil, err
		}
	}
	args = append(args, "--name", filepath.Base(dir), "--data-dir", dir, "--listen", p.http, "--admin", p.admin, "--mesh", p.mesh)
	var err error
	p.Process, err = rig.Start(ctx, rig.Command{Core: rig.OfServer, Env: []string{"GOMAXPROCS=1"}, Name: binary, Args: args})
	return p, err
}

// await waits until a node takes requests and sees that many others.
func (p *process) await(ctx context.Context, others int) error {
	return p.AwaitFunc(ctx, fmt.Sprintf("sees %d others", others), func(ctx context.Context) bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.admin+"/status", nil)
		if err != nil {
			return false
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		var s struct {
			Ready bool
			Peers []struct{ State string }
		}
		err = json.NewDecoder(resp.Body).Decode(&s)
		alive := 0
		for _, o := range s.Peers {
			if o.State == "alive" {
				alive++
			}
		}
		return err == nil && s.Ready && alive == others
	})
}

// used returns the processor time that all nodes take while f runs, and how long that is.
func (g *group) used(ctx context.Context, f func(context.Context) error) (used, span time.Duration, err error) {
	before, err := g.cpu()
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := f(ctx); err != nil {
		return 0, 0, err
	}
	after, err := g.cpu()
	return after - before, time.Since(start), err
}

// cpu returns the processor time that all nodes have taken so far.
func (g *group) cpu() (total time.Duration, err error) {
	for _, p := range g.nodes {
		used, err := p.CPU()
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}

func (g *group) stop() error {
	var errs []error
	for _, p := range g.nodes {
		errs = append(errs, p.Kill())
	}
	return errors.Join(append(errs, os.RemoveAll(g.dir))...)
}
