package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// FaultKind is what goes wrong.
type FaultKind string

const (
	// Partition cuts Site off from all others; with Peer, Site and Peer from each
	// other; with Node, that one node from everybody, its own site included.
	// Visitors go on reaching all nodes. With OneWay, only what leaves Site (or
	// Node) is lost.
	Partition FaultKind = "partition"
	// Crash kills a node, or all of Site. After For it starts again from the
	// state on its disk, which is up to a second old. Zero For: it stays dead.
	Crash FaultKind = "crash"
	// Wipe is Crash with the disk lost: what starts after For is a new node.
	Wipe FaultKind = "wipe"
	// Pause stops a node, or all of Site, as SIGSTOP does, for For. Messages to
	// it pile up as far as its inbox goes.
	Pause FaultKind = "pause"
	// Skew makes the clock of the machine of a node, or of all of Site, jump by By, and
	// back after For. Zero For: it stays. A node has the time of its start: it comes
	// to know when it starts again.
	Skew FaultKind = "skew"
	// Link makes the way from Site to others (with Peer: only to Peer), and back
	// unless OneWay, slower by By and lossier by Loss.
	Link FaultKind = "link"
	// Leave has a node, or all of Site, leave in good order, and keep the rights
	// that it has. After For it comes back. Zero For: it stays away.
	Leave FaultKind = "leave"
	// HandOver has a node, or all of Site, leave for good and hand its rights to an
	// heir first. That takes as long as it takes, at most For; then it is killed.
	// Zero For: no limit.
	HandOver FaultKind = "hand-over"
	// Join keeps a node, or all of Site, away until From: new ones start then.
	Join FaultKind = "join"
	// Declare has an operator say that the nodes which Wipe has made of Node, or of all of
	// Site, before From are dead: at one or two nodes that have heard of all that run.
	Declare FaultKind = "declare"
	// Limits has an operator give the room other limits at a node, Active and Rate, or
	// sessions of another length, Session. One that is zero stays. The others hear of the
	// limits from that node.
	Limits FaultKind = "limits"
	// Policy has an operator give the room the policy To at a node, or at all of Site, and
	// its own again after For. Under escrow only.
	Policy FaultKind = "policy"
	// Remake has an operator delete the room at a node, and another one make it again
	// For later: a node is started for that as the founder of a mesh.
	Remake FaultKind = "remake"
	// DiskFull has every write of a node, or of all of Site, fail for For, and
	// change nothing.
	DiskFull FaultKind = "disk-full"
	// DiskFail has every write fail for For. Half of them are on the disk all the
	// same, which nobody can know.
	DiskFail FaultKind = "disk-fail"
	// DiskSlow makes every write take By longer for For.
	DiskSlow FaultKind = "disk-slow"
)

// takes is what a kind of fault may be told beside where and when, by the names of
// the command line; what it needs has a mark behind it.
type takes struct {
	kind   FaultKind
	fields string
}

// limitFields stand for each other: one of them is enough.
const limitFields = "active,rate,session"

func faultKinds() []takes {
	return []takes{
		{Partition, "for! peer oneway"},
		{Crash, "for"},
		{Wipe, "for"},
		{Pause, "for!"},
		{Skew, "by! for"},
		{Link, "for! peer oneway by loss"},
		{Leave, "for"},
		{HandOver, "for"},
		{Join, ""},
		{Declare, ""},
		{Limits, limitFields + "!"},
		{Policy, "for! to!"},
		{Remake, "for"},
		{DiskFull, "for!"},
		{DiskFail, "for!"},
		{DiskSlow, "for! by!"},
	}
}

// FaultKinds lists all kinds.
func FaultKinds() (all []FaultKind) {
	for _, k := range faultKinds() {
		all = append(all, k.kind)
	}
	return all
}

// Fault is one thing that goes wrong. Sites and nodes are numbered from 1.
type Fault struct {
	Kind FaultKind     `json:"kind"`
	Site int           `json:"site"`           // required
	Node int           `json:"node,omitempty"` // of Site; 0: all of them
	Peer int           `json:"peer,omitempty"` // another site; Partition and Link only
	From time.Duration `json:"from_ns"`        // counted as Config.Length is
	For  time.Duration `json:"for_ns,omitempty"`

	By     time.Duration `json:"by_ns,omitempty"`   // Skew, Link and DiskSlow
	Loss   float64       `json:"loss,omitempty"`    // Link; 0 … 1
	OneWay bool          `json:"one_way,omitempty"` // Partition and Link
	Active int           `json:"active,omitempty"`  // Limits; as room.Settings has it
	Rate   int           `json:"rate,omitempty"`    // Limits; new users per minute

	Session time.Duration `json:"session_ns,omitempty"` // Limits; as room.Settings has it
	To      room.Policy   `json:"to,omitempty"`         // Policy
}

// check reports what does not go together in f, or not with the run that c describes.
func (f Fault) check(c Config) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	kind := slices.IndexFunc(faultKinds(), func(k takes) bool { return k.kind == f.Kind })
	if kind < 0 {
		return fmt.Errorf("there is no such kind; want one of %v", FaultKinds())
	}
	f.checkFields(strings.Fields(faultKinds()[kind].fields), bad)
	f.checkWhere(c, bad)
	if f.From < 0 || f.From > c.Length {
		bad("from %v is outside of the run, which is %v long", f.From, c.Length)
	}
	if f.By < 0 && f.Kind != Skew {
		bad("by %v; want a delay", f.By)
	}
	if f.Kind == Link && f.By == 0 && f.Loss == 0 {
		bad("by and loss are missing; want one of them, or both")
	}
	if (f.Kind == Remake || f.Kind == Policy) && c.Room.Policy != room.Escrow {
		bad("only a room whose policy is %s has that", room.Escrow)
	}
	if others := []room.Policy{room.Even, room.Curve, room.Counter, room.Open}; f.Kind == Policy && !slices.Contains(others, f.To) {
		bad("to %q; want one of %v", f.To, others)
	}
	return errors.Join(errs...)
}

// checkFields looks at what is given but means nothing, and at what is missing.
func (f Fault) checkFields(fields []string, bad badFunc) {
	all := map[string]bool{
		"for": f.For != 0, "peer": f.Peer != 0, "oneway": f.OneWay, "by": f.By != 0, "loss": f.Loss != 0, "to": f.To != "",
		limitFields: f.Active != 0 || f.Rate != 0 || f.Session != 0,
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		given, needed := all[name], slices.Contains(fields, name+"!")
		switch {
		case given && !needed && !slices.Contains(fields, name):
			bad("%s means nothing here", name)
		case needed && !given:
			bad("%s is missing", name)
		}
	}
}

func (f Fault) checkWhere(c Config, bad badFunc) {
	switch {
	case f.Site == 0:
		bad("site is missing")
	case f.Site < 1 || f.Site > c.Sites:
		bad("there is no site %d; the sites are 1 to %d", f.Site, c.Sites)
	case f.Node < 0 || f.Node > c.Nodes:
		bad("there is no node %d at a site; the nodes are 1 to %d", f.Node, c.Nodes)
	case f.Peer != 0 && (f.Peer < 1 || f.Peer > c.Sites || f.Peer == f.Site):
		bad("there is no other site %d; the sites are 1 to %d", f.Peer, c.Sites)
	case f.Peer != 0 && f.Node != 0:
		bad("either a node or a peer, not both")
	case f.Kind == Link && f.Node != 0:
		bad("a link is between sites, not nodes")
	case (f.Kind == Link || f.Kind == Partition && f.Node == 0) && c.Sites < 2:
		bad("there is one site only")
	}
}
