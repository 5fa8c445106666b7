//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/transport"
)

// Config says what a mesh is made of.
type Config struct {
	Binary string   // ropeline, built with the tag "faults": see Built
	Dir    string   // for data, logs and records; must be there
	Names  []string // of the nodes that bootstrap it: the site's letters and a number, such as a1
	Args   []string // for every node: the room
	// Disk, if not 0, is the size in bytes of a file system of its own for each
	// data directory.
	Disk int64
	// Origin serves the site behind the mesh.
	Origin http.Handler
	// LogReader is a program that the log of each node goes through, and its arguments; nil: there is none.
	LogReader []string
}

// Mesh is the nodes and what is around them.
type Mesh struct {
	Net   Network
	Nodes []*Node

	cfg     Config
	secret  string // the file that has it
	sources []record.Source
	origin  http.Server
	serving sync.WaitGroup
}

// NewMesh prepares a mesh in a network, which is the mesh's from now on, and
// starts nothing. After an error nothing is left.
func NewMesh(cfg Config, network Network) (*Mesh, error) {
	m := &Mesh{Net: network, cfg: cfg, secret: filepath.Join(cfg.Dir, "secret.key")}
	m.origin.Handler = cfg.Origin
	err := Try(func() {
		Must(os.WriteFile(m.secret, []byte(transport.NewSecret().Text()+"\n"), 0o600))
		for _, name := range cfg.Names {
			n := Got(m.Add(name))
			if cfg.Disk > 0 {
				n.Disk = Got(NewDisk(n.Data, cfg.Disk))
			}
		}
	})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Add makes room for another node.
func (m *Mesh) Add(name string) (n *Node, err error) {
	err = Try(func() {
		n = &Node{Process: never(), Name: name, Site: strings.TrimRight(name, "0123456789"), Data: filepath.Join(m.cfg.Dir, name), mesh: m}
		n.Place = Got(m.Net.Join(n.Name, n.Site))
		l := Got(m.Net.Listen(name))
		n.origin = "http://" + l.Addr().String()
		m.serving.Go(func() { _ = m.origin.Serve(l) }) // ends with Close, and says so
		n.client.Transport = &http.Transport{DialContext: m.Net.Dial, MaxIdleConns: 2}
		m.Nodes = append(m.Nodes, n)
	})
	return n, err
}

// seeds returns where n joins: the nodes before it, and for the first one, so
// that it finds the others after a restart, nobody until somebody has started.
func (m *Mesh) seeds(n *Node) []string {
	var seeds []string
	for _, other := range m.Nodes {
		if other != n && (other.starts > 0 || other.Name < n.Name) {
			seeds = append(seeds, other.Place.seed())
		}
	}
	return seeds
}

// Node returns a node by name. It panics if there is none.
func (m *Mesh) Node(name string) *Node {
	i := slices.IndexFunc(m.Nodes, func(n *Node) bool { return n.Name == name })
	return m.Nodes[i]
}

// Sources returns the records of all starts so far.
func (m *Mesh) Sources() []record.Source { return slices.Clone(m.sources) }

// Start starts all nodes, one after the other, and waits until all see all.
func (m *Mesh) Start(ctx context.Context) error {
	for _, n := range m.Nodes {
		if err := n.Start(); err != nil {
			return err
		}
	}
	return m.Await(ctx, 30*time.Second)
}

// Await waits until every node that runs is ready and sees all others that run.
func (m *Mesh) Await(ctx context.Context, limit time.Duration) error {
	running := slices.DeleteFunc(slices.Clone(m.Nodes), func(n *Node) bool { return !n.Running() })
	for _, n := range running {
		err := n.Await(ctx, limit, "is ready and sees all others", func(s node.Status) bool { return s.Ready && Alive(s) >= len(running)-1 })
		if err != nil {
			return err
		}
	}
	return nil
}

// Await polls a node until its status is as wanted, and says in an error what
// was seen instead.
func (n *Node) Await(ctx context.Context, limit time.Duration, what string, wanted func(node.Status) bool) error {
	var last node.Status
	err := errors.New("not asked yet")
	for deadline := time.Now().Add(limit); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if !n.Running() {
			return fmt.Errorf("%s ended (%v) while it should come to be that it %s; it said last:\n%s", n.Name, n.State(), what, n.Tail(8))
		}
		if last, err = n.Status(ctx); err == nil && wanted(last) {
			return nil
		}
	}
	return errors.Join(context.Cause(ctx), fmt.Errorf("not within %v: that %s %s (last status: ready %v, %d peers alive; error: %v)", limit, n.Name, what, last.Ready, Alive(last), err))
}

// Close ends everything and removes what was made, but for the files in Dir.
func (m *Mesh) Close() error {
	var errs []error
	var wg sync.WaitGroup
	for _, n := range m.Nodes {
		wg.Go(func() { _ = n.Kill() }) // it is gone one way or the other
	}
	wg.Wait()
	for _, n := range m.Nodes {
		n.client.CloseIdleConnections()
		if n.Disk != nil {
			errs = append(errs, n.Disk.Close())
		}
	}
	errs = append(errs, m.origin.Close(), m.Net.Close())
	m.serving.Wait()
	return errors.Join(errs...)
}
