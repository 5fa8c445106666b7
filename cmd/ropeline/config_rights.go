package main

import (
	"errors"
	"fmt"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
	"github.com/ropeline/ropeline/node/settings"
)

// rightsConfig is what the operator says about the capacity of a mesh: which nodes make it
// together, and what becomes of the rights of a node that stops or is gone.
type rightsConfig struct {
	Bootstrap   []string // names of nodes
	OnStop      string
	DeclareDead []crdt.NodeID
	RetireRooms []crdt.RoomID
}

// What a node does with its rights when it is stopped.
const (
	stopKeeps  = "keep"  // they wait for its next start
	stopLeaves = "leave" // another node has them from then on
)

// checkRights refuses what would leave a mesh without capacity, or names one where there is
// none.
func (c *config) checkRights() error {
	if err := bootstrap.CheckNames(c.Rights.Bootstrap); err != nil {
		return c.file.at("bootstrap-nodes", fmt.Errorf("--bootstrap-nodes: %w", err))
	}
	if c.Mesh != "" {
		return nil
	}
	switch {
	case c.Rights.OnStop == stopLeaves:
		return c.file.at("on-stop", errors.New("--on-stop leave needs --mesh: a single node has nobody to leave its rights to"))
	case len(c.Rights.DeclareDead) > 0:
		return c.file.at("declare-dead", errors.New("--declare-dead needs --mesh: a single node knows of no others"))
	case len(c.Rights.Bootstrap) > 1 || len(c.Rights.Bootstrap) == 1 && c.Rights.Bootstrap[0] != c.Name:
		return c.file.at("bootstrap-nodes", errors.New("--bootstrap-nodes needs --mesh, the UDP address on which these nodes reach this one: a node without it bootstraps alone"))
	}
	return nil
}

// replaced is a flag of an earlier version.
func replaced(name string) settings.Kind[string] {
	return settings.Parsed(settings.Spec{Type: typeGone}, func(string) (string, error) {
		return "", fmt.Errorf("--%s is gone: give all nodes the same --bootstrap-nodes, the names of the first nodes of the mesh, such as --bootstrap-nodes a1,a2,b1 (the first of them mints; a node without --mesh needs nothing, and in a mesh that is there the list is ignored)", name)
	}, func(s string) string { return s })
}
