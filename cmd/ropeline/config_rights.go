package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/crdt"
)

// rightsConfig is what the operator says about the rights of a mesh: who makes
// them, and what becomes of those of a node that stops or is gone.
type rightsConfig struct {
	Found       *bool  // nil: as Founder says
	Founder     string // the name of the node that founds; empty: one that shall join nobody
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
	found := optionalValue[bool]{&c.Found, yesOrNo}
	fs.VarPF(found, "found", "", "make the rights of rooms that have none yet: one node of a mesh does (default: true without --join)").NoOptDefVal = "true"
	fs.Var(nameValue{&c.Founder, nodeNameExtra, maxNodeName}, "founder", "the name of the node that makes the rights of rooms that have none yet, for settings that all nodes share, instead of --found")
	fs.Var(enumValue[string]{&c.OnStop, []string{stopKeeps, stopLeaves}}, "on-stop", "when this node is stopped: keep its rights for its next start, or leave them to another node")
	fs.Var(idsValue[crdt.NodeID]{&c.DeclareDead, "node", crdt.ParseNodeID}, "declare-dead", "ids of nodes that are gone for good with their data directories; the others get their rights")
	fs.Var(idsValue[crdt.RoomID]{&c.RetireRooms, "room", crdt.ParseRoomID}, "retire-room", "ids of rooms that are deleted; nobody is let into them any more")
}

// founds reports whether the node makes the rights of rooms that have none.
func (c *config) founds() bool {
	switch {
	case c.Rights.Found != nil:
		return *c.Rights.Found
	case c.Rights.Founder != "":
		return c.Rights.Founder == c.Name
	}
	return len(c.Join) == 0
}

// checkRights refuses what would leave a room without rights, or names a mesh
// where there is none.
func (c *config) checkRights() error {
	if c.Rights.Found != nil && c.Rights.Founder != "" {
		return c.file.at("founder", errors.New("--found and --founder say the same: give --found to the one node that founds, or --founder with its name to all"))
	}
	if c.Mesh != "" {
		return nil
	}
	switch {
	case !c.founds():
		setting := "found"
		if c.Rights.Found == nil {
			setting = "founder"
		}
		return c.file.at(setting, errors.New("--found=false, or another node as --founder, is for nodes that join others: a single node has to make the rights of its rooms itself, or it lets nobody in"))
	case c.Rights.OnStop == stopLeaves:
		return c.file.at("on-stop", errors.New("--on-stop leave needs --mesh: a single node has nobody to leave its rights to"))
	case len(c.Rights.DeclareDead) > 0:
		return c.file.at("declare-dead", errors.New("--declare-dead needs --mesh: a single node knows of no others"))
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
