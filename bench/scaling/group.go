//go:build linux

package scaling

import (
	"context"
	"fmt"
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

// start starts all processes and waits until every mesh is whole.
func (g *group) start(ctx context.Context, binary string, size int, site string) {
	g.dir = rig.Got(os.MkdirTemp("", "scaling"))
	secret := filepath.Join(g.dir, "secret.key")
	rig.Must(os.WriteFile(secret, []byte(transport.NewSecret().Text()+"\n"), 0o600))
	for i := range processes {
		// The first of each mesh makes it, and is waited for.
		first := i / size * size
		ports := rig.Got(rig.FreePorts(3))
		name := fmt.Sprint("node-", i)
		dir := filepath.Join(g.dir, name)
		rig.Must(os.Mkdir(dir, 0o700))
		args := []string{"--bootstrap-nodes", fmt.Sprint("node-", first), "--secret-file", secret, "--log-level", "warn", "--name", name, "--mesh", ports[2]}
		if first != i {
			args = append(args, "--join", g.nodes[first].mesh)
		}
		p := rig.Got(rig.StartNode(ctx, rig.NodeConfig{Binary: binary, Listen: ports[0], Admin: ports[1], Site: site, Dir: dir, Config: settings, Args: args}))
		g.nodes = append(g.nodes, &process{p, ports[0], ports[1], ports[2]})
		if first == i {
			rig.Must(g.nodes[i].await(ctx, 0)) // who joins shall find somebody
		}
	}
	for _, p := range g.nodes {
		rig.Must(p.await(ctx, size-1))
	}
	rig.Must(rig.Sleep(ctx, 5*time.Second)) // rights and counters have settled
}

// await waits until a node takes requests and sees that many others.
func (p *process) await(ctx context.Context, others int) error {
	return p.AwaitFunc(ctx, fmt.Sprintf("sees %d others", others), func(ctx context.Context) bool {
		s, err := rig.StatusAt(ctx, p.admin)
		return err == nil && s.Ready && rig.Alive(s) == others
	})
}

// used returns the processor time that all nodes take while f runs, and how long that is.
func (g *group) used(f func()) (used, span time.Duration) {
	before, start := g.cpu(), time.Now()
	f()
	return g.cpu() - before, time.Since(start)
}

// cpu returns the processor time that all nodes have taken so far.
func (g *group) cpu() (total time.Duration) {
	for _, p := range g.nodes {
		total += rig.Got(p.CPU())
	}
	return total
}

func (g *group) stop() {
	for _, p := range g.nodes {
		_ = p.Kill() // it has nothing to lose
	}
	_ = os.RemoveAll(g.dir)
}
