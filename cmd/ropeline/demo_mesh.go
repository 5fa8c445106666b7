package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/httpfront/server"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/transport"
)

// demoNode is one node of the demonstration and where it listens.
type demoNode struct {
	name, site        string
	http, admin, mesh string       // host:port
	process           *rig.Process // nil: it was not started
}

// demoRoom is the one room of the demonstration. It is small and quick, so that
// there is something to see within half a minute.
type demoRoom struct {
	active, perMinute int
	session, refresh  time.Duration
	method            room.Method
}

// demoMesh is the nodes of the demonstration.
type demoMesh struct {
	dir      string
	nodes    []*demoNode
	ended    chan *demoNode // has room for all of them
	watchers sync.WaitGroup
	ask      http.Client
}

// planDemoMesh chooses names and free addresses. listen is where the first node
// serves visitors; if it is taken, another address will do unless must is set.
func planDemoMesh(dir, listen string, must bool) (*demoMesh, error) {
	m := &demoMesh{
		dir: dir,
		ask: http.Client{Timeout: 2 * time.Second},
		nodes: []*demoNode{
			{name: "north-1", site: "north"},
			{name: "north-2", site: "north"},
			{name: "south-1", site: "south"},
		},
	}
	m.ended = make(chan *demoNode, len(m.nodes))
	for i, n := range m.nodes {
		var err error
		if i == 0 {
			var l net.Listener
			if l, err = net.Listen("tcp", listen); err == nil {
				defer l.Close() // so that none of the others gets it
				n.http = l.Addr().String()
			}
		}
		if i > 0 || errors.Is(err, syscall.EADDRINUSE) && !must {
			n.http, err = rig.Free()
		}
		if err != nil {
			return nil, fmt.Errorf("an address for node %s: %w; give another with --listen", n.name, err)
		}
		if n.admin, err = rig.Free(); err != nil {
			return nil, fmt.Errorf("an address for the status of node %s: %w", n.name, err)
		}
		if n.mesh, err = rig.Free(); err != nil {
			return nil, fmt.Errorf("an address for the mesh of node %s: %w", n.name, err)
		}
	}
	return m, nil
}

// arguments returns the command line of one node.
func (m *demoMesh) arguments(n *demoNode, origin string, shop demoRoom) []string {
	args := []string{
		"run",
		"--origin", origin,
		"--listen", n.http,
		"--admin", n.admin,
		"--name", n.name,
		"--site", n.site,
		"--mesh", n.mesh,
		"--secret-file", m.secretFile(),
		"--data-dir", filepath.Join(m.dir, n.name),
		"--room", "shop",
		"--total-active-users", strconv.Itoa(shop.active),
		"--new-users-per-minute", strconv.Itoa(shop.perMinute),
		"--session-duration", shop.session.String(),
		"--refresh-interval", shop.refresh.String(),
		"--bucket-span", "10s",
		"--queueing-method", string(shop.method),
	}
	for _, other := range m.nodes {
		args = append(args, "--bootstrap-nodes", other.name)
	}
	for _, other := range m.nodes {
		if other == n {
			break // those that start later join us
		}
		args = append(args, "--join", other.mesh)
	}
	return args
}

func (m *demoMesh) secretFile() string { return filepath.Join(m.dir, "secret.key") }

// start starts all nodes and returns when they have found each other. Whoever
// called it calls stop, also after an error.
func (m *demoMesh) start(ctx context.Context, exe, origin string, shop demoRoom) error {
	if err := server.WriteSecret(m.secretFile(), transport.NewSecret().Text()+"\n"); err != nil {
		return err
	}
	for _, n := range m.nodes {
		if err := os.MkdirAll(filepath.Join(m.dir, n.name), 0o700); err != nil {
			return err
		}
		log := filepath.Join(m.dir, n.name+".log")
		// What ends the demonstration ends them in order, by stop.
		p, err := rig.Start(context.WithoutCancel(ctx), rig.Command{Name: exe, Args: m.arguments(n, origin, shop), Log: log})
		if err != nil {
			return fmt.Errorf("node %s: %w", n.name, err)
		}
		n.process = p
		m.watchers.Go(func() { <-p.Ended(); m.ended <- n })
	}
	return m.awaitReady(ctx)
}

// readyTimeout bounds the start of the whole mesh.
const readyTimeout = 30 * time.Second

// awaitReady waits until every node takes visitors and sees all others.
func (m *demoMesh) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, errors.New("time is up"))
	defer cancel()
	ticker := time.Tick(100 * time.Millisecond)
	for _, n := range m.nodes {
		reason := errors.New("no answer yet")
		for reason != nil {
			select {
			case <-ticker:
				if now := m.ready(ctx, n); ctx.Err() == nil {
					reason = now // else it only says that time is up
				}
			case dead := <-m.ended:
				return dead.failure()
			case <-ctx.Done():
				return fmt.Errorf("node %s did not get ready (%w): %w", n.name, context.Cause(ctx), reason)
			}
		}
	}
	return nil
}

// ready returns nil when n takes visitors and sees all others, and else what is
// missing.
func (m *demoMesh) ready(ctx context.Context, n *demoNode) error {
	status, err := m.statusOf(ctx, n)
	if err != nil {
		return err
	}
	if !status.Ready {
		return fmt.Errorf("it says: %s", status.Reason)
	}
	alive := 0
	for _, p := range status.Peers {
		if p.State == "alive" && p.Name != n.name {
			alive++
		}
	}
	if want := len(m.nodes) - 1; alive < want {
		return fmt.Errorf("it sees %d of %d other nodes", alive, want)
	}
	return nil
}

// status returns what the first node that answers sees.
func (m *demoMesh) status(ctx context.Context) (node.Status, error) {
	var errs []error
	for _, n := range m.nodes {
		if !n.process.Running() {
			continue
		}
		s, err := m.statusOf(ctx, n)
		if err == nil && len(s.Rooms) == 0 {
			err = errors.New("it has no room")
		}
		if err == nil {
			return s, nil
		}
		errs = append(errs, fmt.Errorf("node %s: %w", n.name, err))
	}
	return node.Status{}, fmt.Errorf("no node tells its status: %w", errors.Join(errs...))
}

func (m *demoMesh) statusOf(ctx context.Context, n *demoNode) (s node.Status, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.admin+"/status", nil)
	if err != nil {
		return s, err
	}
	resp, err := m.ask.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("status: %s", resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&s); err != nil {
		return s, fmt.Errorf("status: %w", err)
	}
	return s, nil
}

// alive returns how many nodes run.
func (m *demoMesh) alive() int {
	count := 0
	for _, n := range m.nodes {
		if n.process != nil && n.process.Running() {
			count++
		}
	}
	return count
}

// failure says how the process of a node ended and shows the last of what it printed.
func (n *demoNode) failure() error {
	return fmt.Errorf("node %s ended (%s); it said last:\n%s", n.name, n.process.State(), n.process.Tail(12))
}

// stopGrace is how long a node may take to end by itself. Visitors of a
// demonstration have nothing to lose.
const stopGrace = 5 * time.Second

// stop ends all nodes, all at once, and waits for them.
func (m *demoMesh) stop() {
	var wg sync.WaitGroup
	for _, n := range m.nodes {
		if n.process != nil {
			wg.Go(func() { _ = n.process.StopWithin(stopGrace) }) // it is gone one way or the other
		}
	}
	wg.Wait()
	m.watchers.Wait()
	m.ask.CloseIdleConnections()
}
