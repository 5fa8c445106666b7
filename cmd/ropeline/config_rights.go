package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
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

func (c *rightsConfig) bind(fs *pflag.FlagSet) {
	fs.Var(namesValue{&c.Bootstrap}, "bootstrap-nodes", "names of the nodes that bootstrap a new mesh together, the same list at all of them: capacity is minted once all have it on disk, by the first; ignored in a mesh that is there")
	for _, old := range []string{"found", "founder"} {
		fs.VarPF(goneValue{old}, old, "", "has been replaced by --bootstrap-nodes").NoOptDefVal = "true"
		_ = fs.MarkHidden(old) // fails for flags that are not there
	}
	fs.Var(enumValue[string]{&c.OnStop, []string{stopKeeps, stopLeaves}}, "on-stop", "when this node is stopped: keep its rights for its next start, or leave them to another node")
	fs.Var(idsValue[crdt.NodeID]{&c.DeclareDead, "node", crdt.ParseNodeID}, "declare-dead", "ids of nodes that are gone for good with their data directories; the others get their rights")
	fs.Var(idsValue[crdt.RoomID]{&c.RetireRooms, "room", crdt.ParseRoomID}, "retire-room", "ids of rooms that are deleted; nobody is let into them any more")
}

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

// goneValue is a flag of an earlier version.
type goneValue struct{ name string }

func (v goneValue) String() string { return "" }
func (v goneValue) Type() string   { return "string" }
func (v goneValue) Set(string) error {
	return fmt.Errorf("--%s is gone: give all nodes the same --bootstrap-nodes, the names of the first nodes of the mesh, such as --bootstrap-nodes a1,a2,b1 (the first of them mints; a node without --mesh needs nothing, and in a mesh that is there the list is ignored)", v.name)
}

// namesValue is a list of names of nodes.
type namesValue struct{ dst *[]string }

func (v namesValue) String() string {
	if v.dst == nil {
		return ""
	}
	return strings.Join(*v.dst, ",")
}
func (v namesValue) Type() string { return "name,..." }
func (v namesValue) clear()       { *v.dst = nil }
func (v namesValue) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		var name string
		if err := (nameValue{&name, nodeNameExtra, maxNodeName}).Set(strings.TrimSpace(one)); err != nil {
			return err
		}
		*v.dst = append(*v.dst, name)
	}
	return nil
}

// idsValue is a list of ids of nodes or rooms; each use of the flag adds to it.
type idsValue[ID interface {
	comparable
	fmt.Stringer
}] struct {
	dst   *[]ID
	of    string
	parse func(string) (ID, error)
}

func (v idsValue[ID]) String() string {
	if v.dst == nil {
		return ""
	}
	words := make([]string, len(*v.dst))
	for i, id := range *v.dst {
		words[i] = id.String()
	}
	return strings.Join(words, ",")
}
func (v idsValue[ID]) Type() string { return "id,..." }
func (v idsValue[ID]) clear()       { *v.dst = nil }
func (v idsValue[ID]) Set(s string) error {
	var none ID
	for one := range strings.SplitSeq(s, ",") {
		id, err := v.parse(strings.TrimSpace(one))
		if err != nil || id == none {
			return fmt.Errorf("%q is not allowed: the id of a %s, 32 hexadecimal digits as the status of any node shows them", one, v.of)
		}
		if !slices.Contains(*v.dst, id) {
			*v.dst = append(*v.dst, id)
		}
	}
	return nil
}
