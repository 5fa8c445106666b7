package sim

import (
	"errors"
	"fmt"
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

// FaultKinds lists all kinds.
func FaultKinds() []FaultKind {
	return []FaultKind{Partition, Crash, Wipe, Pause, Skew, Link, Leave, HandOver, Join, Declare, Limits, Policy, Remake, DiskFull, DiskFail, DiskSlow}
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

// check reports what is wrong with f in the run that c describes.
func (f Fault) check(c Config) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !slices.Contains(FaultKinds(), f.Kind) {
		names := make([]string, 0, len(FaultKinds()))
		for _, k := range FaultKinds() {
			names = append(names, string(k))
		}
		return fmt.Errorf("there is no such kind; want one of %s", strings.Join(names, ", "))
	}
	f.checkWhere(c, bad)
	if f.From < 0 || f.From > c.Length {
		bad("from %v is outside of the run, which is %v long", f.From, c.Length)
	}
	if f.For < 0 || f.For > maxLength {
		bad("for %v; want 0 to %v", f.For, maxLength)
	}
	if lasting := []FaultKind{Partition, Pause, Link, Policy, DiskFull, DiskFail, DiskSlow}; f.For == 0 && slices.Contains(lasting, f.Kind) {
		bad("for is missing: how long it lasts")
	}
	if f.For != 0 && (f.Kind == Join || f.Kind == Declare || f.Kind == Limits) {
		bad("for means nothing here")
	}
	if f.Kind == Remake && c.Room.Policy != room.Escrow {
		bad("rooms are made again under the policy %s only", room.Escrow)
	}
	f.checkPolicy(c, bad)
	f.checkHow(bad)
	return errors.Join(errs...)
}

func (f Fault) checkWhere(c Config, bad badFunc) {
	switch {
	case f.Site == 0:
		bad("site is missing")
	case f.Site < 1 || f.Site > c.Sites:
		bad("there is no site %d; the sites are 1 to %d", f.Site, c.Sites)
	}
	if f.Node < 0 || f.Node > c.Nodes {
		bad("there is no node %d at a site; the nodes are 1 to %d", f.Node, c.Nodes)
	}
	switch pairs := f.Kind == Partition || f.Kind == Link; {
	case f.Peer == 0:
	case !pairs:
		bad("a peer means nothing here")
	case f.Peer < 1 || f.Peer > c.Sites || f.Peer == f.Site:
		bad("there is no other site %d; the sites are 1 to %d", f.Peer, c.Sites)
	case f.Node != 0:
		bad("either a node or a peer, not both")
	}
	switch {
	case f.Kind == Link && f.Node != 0:
		bad("a link is between sites, not nodes")
	case (f.Kind == Link || f.Kind == Partition && f.Node == 0) && c.Sites < 2:
		bad("there is one site only")
	}
}

func (f Fault) checkHow(bad badFunc) {
	switch f.Kind {
	case Skew:
		if f.By == 0 || f.By < -24*time.Hour || f.By > 24*time.Hour {
			bad("by %v; want another time than 0, at most a day", f.By)
		}
	case Link:
		if f.By < 0 || f.By > time.Minute || f.By == 0 && f.Loss == 0 {
			bad("by %v and loss %g; want a delay up to a minute, a loss, or both", f.By, f.Loss)
		}
	case DiskSlow:
		if f.By <= 0 || f.By > time.Minute {
			bad("by %v; want a delay up to a minute", f.By)
		}
	default:
		if f.By != 0 {
			bad("by means nothing here")
		}
	}
	if f.Loss != 0 && f.Kind != Link {
		bad("loss means nothing here")
	}
	if !(f.Loss >= 0 && f.Loss <= 1) {
		bad("loss of %g; want 0 to 1", f.Loss)
	}
	if f.OneWay && f.Kind != Partition && f.Kind != Link {
		bad("one way means nothing here")
	}
	f.checkLimits(bad)
}

func (f Fault) checkPolicy(c Config, bad badFunc) {
	others := []room.Policy{room.Even, room.Curve, room.Counter, room.Open}
	switch {
	case f.Kind != Policy:
		if f.To != "" {
			bad("to means nothing here")
		}
	case c.Room.Policy != room.Escrow:
		bad("the policy is switched where it is %s only", room.Escrow)
	case !slices.Contains(others, f.To):
		bad("to %q; want one of %v", f.To, others)
	}
}

func (f Fault) checkLimits(bad badFunc) {
	switch {
	case f.Kind != Limits:
		if f.Active != 0 || f.Rate != 0 || f.Session != 0 {
			bad("limits mean nothing here")
		}
	case f.Active == 0 && f.Rate == 0 && f.Session == 0:
		bad("want a new limit of active users, of new ones a minute, another session, or several of these")
	case f.Active < 0 || f.Rate < 0 || f.Session < 0:
		bad("limits of %d and %d, and a session of %v; want 1 or more", f.Active, f.Rate, f.Session)
	}
}
