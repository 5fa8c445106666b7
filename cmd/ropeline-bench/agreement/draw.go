package agreement

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Kind is what a step does.
type Kind string

// Acts of operators, which go on with a thing that the node shows, and troubles.
const (
	MakeRoom     Kind = "make room"
	ChangeRoom   Kind = "change room"
	GivePage     Kind = "give page"
	DropRoom     Kind = "drop room"
	MakeEvent    Kind = "make event"
	ChangeEvent  Kind = "change event"
	DropEvent    Kind = "drop event"
	MakeRule     Kind = "make rule"
	ChangeRule   Kind = "change rule"
	MoveRule     Kind = "move rule"
	DropRule     Kind = "drop rule"
	ReplaceRules Kind = "replace rules"
	MakeLimit    Kind = "make limit"
	ChangeLimit  Kind = "change limit"
	MoveLimit    Kind = "move limit"
	DropLimit    Kind = "drop limit"
	ChangeZone   Kind = "change zone"

	CutNode   Kind = "cut node"
	CutSite   Kind = "cut site"
	Mute      Kind = "mute"   // others hear nothing of a node, which hears them
	Deafen    Kind = "deafen" // the other way round
	Heal      Kind = "heal"
	Restart   Kind = "restart"
	Join      Kind = "join"
	Wipe      Kind = "wipe"
	BuryLost  Kind = "bury lost"
	Leave     Kind = "leave"
	Pause     Kind = "pause"      // nothing is done for so long that deletions are forgotten
	WrongTime Kind = "wrong time" // a start with a wrong clock, and later one with the right one
)

// Step is one act or trouble, some time after the one before.
type Step struct {
	Do    Kind
	Node  int           // of those there are, by turns
	Thing int           // the same, of the things that the node shows
	Value int           // what it becomes; what of it is changed follows from it, too
	After time.Duration // since the step before
}

func (s Step) String() string {
	return fmt.Sprintf("{%q, %d, %d, %d, %d * time.Millisecond}", s.Do, s.Node, s.Thing, s.Value, s.After.Milliseconds())
}

// Sequence is all that happens to a mesh.
type Sequence struct {
	Seed   uint64
	Layout string // the site of each node
	Steps  []Step
}

// most is how many acts of operators a sequence has at most.
const most = 30

const mostNodes = 7

// acts and troubles are what is drawn, as often as they stand here.
var (
	acts = []Kind{
		MakeRoom, ChangeRoom, ChangeRoom, ChangeRoom, ChangeRoom, ChangeRoom, GivePage, GivePage, DropRoom,
		MakeEvent, ChangeEvent, DropEvent, MakeRule, MakeRule, ChangeRule, MoveRule, DropRule, ReplaceRules,
		MakeLimit, ChangeLimit, ChangeLimit, MoveLimit, DropLimit, ChangeZone,
	}
	troubles = []Kind{CutNode, CutSite, Mute, Deafen, Heal, Heal, Restart, Restart, Join, Join, Wipe, BuryLost, Leave, WrongTime}
)

// Draw returns the sequence of a seed.
func Draw(seed uint64) Sequence {
	rng := rand.New(rand.NewPCG(seed, 0xa9))
	q := Sequence{Seed: seed}
	nodes, sites := 2+rng.IntN(mostNodes-1), 1+rng.IntN(3)
	for i := range nodes {
		q.Layout += string(rune('a' + i%sites))
	}
	trouble := rng.IntN(4) // of ten
	for n := 1 + rng.IntN(most); n > 0; {
		s := Step{Node: rng.IntN(60), Thing: rng.IntN(60), Value: 1 + rng.IntN(999)}
		switch rng.IntN(4) {
		case 0: // at once
		case 1:
			s.After = time.Duration(rng.IntN(60)) * time.Millisecond
		case 2:
			s.After = time.Duration(rng.IntN(600)) * time.Millisecond
		default:
			s.After = time.Duration(rng.IntN(3000)) * time.Millisecond
		}
		switch {
		case rng.IntN(100) == 0:
			s.Do = Pause
		case rng.IntN(10) < trouble:
			s.Do = troubles[rng.IntN(len(troubles))]
		default:
			s.Do = acts[rng.IntN(len(acts))]
			n--
		}
		q.Steps = append(q.Steps, s)
	}
	return q
}
