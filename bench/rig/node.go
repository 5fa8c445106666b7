//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/node"
)

// Node is one node of a mesh. It may be started many times.
type Node struct {
	*Process   // of its last start
	Name, Site string
	Place      Place
	Data       string   // its data directory
	Args       []string // for its next starts, besides what the mesh gives
	Disk       *Disk    // Data is on it; nil: on that of the machine

	mesh   *Mesh
	origin string
	starts int
	client http.Client
}

// Start starts the node and returns at once.
func (n *Node) Start() error {
	if n.Running() {
		return fmt.Errorf("start %s: it runs", n.Name)
	}
	n.starts++
	stem := fmt.Sprintf("%s-%03d", n.Name, n.starts)
	src := record.Source{Node: n.Name, Path: filepath.Join(n.mesh.cfg.Dir, stem+".rec")}
	args := append([]string{
		"run", "--origin", n.origin, "--name", n.Name, "--site", n.Site,
		"--max-connections-per-address", "100000", // the crowd has one
		"--listen", n.Place.HTTP, "--admin", n.Place.Admin, "--mesh", n.Place.Mesh,
		"--secret-file", n.mesh.secret, "--data-dir", n.Data, "--fault-record", src.Path,
		"--bootstrap-nodes", strings.Join(n.mesh.cfg.Names, ","),
	}, n.mesh.cfg.Args...)
	if n.Place.Advertise != "" {
		args = append(args, "--advertise", n.Place.Advertise)
	}
	for _, seed := range n.mesh.seeds(n) {
		args = append(args, "--join", seed)
	}
	// It ends with the mesh, or as its test says.
	p, err := Start(context.Background(), Command{
		Name: n.mesh.cfg.Binary, Args: append(args, n.Args...), Env: []string{Shipped},
		Log: filepath.Join(n.mesh.cfg.Dir, stem+".log"), Reader: n.mesh.cfg.LogReader, Namespace: n.Place.Namespace,
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", n.Name, err)
	}
	n.Process = p
	n.mesh.sources = append(n.mesh.sources, src)
	return nil
}

// Wipe loses the data directory of a node that does not run.
func (n *Node) Wipe() error {
	entries, err := os.ReadDir(n.Data)
	for _, e := range entries { // one by one: the directory itself may be a disk
		err = errors.Join(err, os.RemoveAll(filepath.Join(n.Data, e.Name())))
	}
	return err
}

// Copy copies the data directory as it is now to a new one.
func (n *Node) Copy(to string) error { return os.CopyFS(to, os.DirFS(n.Data)) }

// Status asks the node what it sees.
func (n *Node) Status(ctx context.Context) (node.Status, error) {
	return StatusAt(ctx, &n.client, n.Place.Admin)
}
