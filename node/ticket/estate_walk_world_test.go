package ticket

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// An estate walk takes nodes with real Rights through gifts, leaves, lost disks and recoveries, in
// random order. It is far smaller than a world: there are no visitors, and one set of facts is true
// for all, though a node acts on it late. So a walk takes milliseconds, and has many more nodes that
// recovered others, or answer for those that left, before they are lost themselves.

// walkOptions says what a walk has besides, and which rules its nodes do not keep.
type walkOptions struct {
	Limits       bool // the limit is raised, and the minter follows it
	Forget       bool // who has left, or was recovered, is forgotten
	Restarts     bool // nodes start again, with what is on their disks
	LeaversSpeak bool // who has left still gives its word on the dead
	LeftOut      Rules
}

const (
	walkCapacity = 1000
	walkMost     = 12              // nodes
	walkSession  = 5 * time.Second // recovered rights are locked for about as long
)

type estateWalk struct {
	*rand.Rand
	t      testing.TB
	opt    walkOptions
	now    time.Time
	rights map[crdt.NodeID]*Rights
	nodes  []crdt.NodeID // all that ever were, in the order in which they came
	boots  map[crdt.NodeID]uint64
	lost   map[crdt.NodeID]bool // have no disk any more
	facts  *facts
	limit  Amount
	chance float64 // that a message arrives, and that a node says what others have to know
	events []walkEvent
	wrong  string // the first thing that was
}

// walkEvent is one line of what happened.
type walkEvent struct {
	what        string
	node, other crdt.NodeID
	n           int64
}

func (e walkEvent) String() string {
	return fmt.Sprintf("%x %s %x: %d", e.node[:2], e.what, e.other[:2], e.n)
}

// What happens in every kind of walk.
const (
	eventGives      = "gives to"
	eventReceives   = "receives from"
	eventLeaves     = "leaves to"
	eventTakesOver  = "takes over from"
	eventLeftToDead = "has left to a dead node,"
	eventLost       = "is lost, whose successor is"
	eventDead       = "declares dead"
	eventRecovers   = "recovers"
	eventAgain      = "recovers again, with who had recovered it,"
	eventJoins      = "joins"
	eventMints      = "mints after"
	eventCloses     = "closes its account with"
	eventKeeps      = "keeps for good the rights of"
	eventFolds      = "folds its account with"
	eventForgets    = "forgets"
	eventRestarts   = "starts again after"
)

func (w *estateWalk) note(what string, node, other crdt.NodeID, n int64) {
	w.events = append(w.events, walkEvent{what, node, other, n})
}

func (w *estateWalk) log() string {
	var b strings.Builder
	for _, e := range w.events {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

// walkEstates runs one walk to its end.
func walkEstates(t testing.TB, seed uint64, opt walkOptions) *estateWalk {
	w := &estateWalk{
		Rand: rand.New(rand.NewPCG(seed, 5)), t: t, opt: opt, now: at(1), rights: map[crdt.NodeID]*Rights{},
		boots: map[crdt.NodeID]uint64{}, lost: map[crdt.NodeID]bool{}, facts: newFacts(), limit: Amount{walkCapacity, walkCapacity},
	}
	first := w.join(Put{keyMinted, appendAmount(nil, w.limit)})
	w.facts.minter, w.facts.minted[first] = first, mintedFact{1, w.limit}
	for range 2 + w.IntN(3) {
		w.rights[first].Give(w.join(), Amount{80, 80}, w.now)
		w.write(first)
	}
	w.deliver(1)
	w.chance = .1 + .7*w.Float64()
	for range 60 + w.IntN(160) {
		if w.step(); !w.withinLimit() {
			return w
		}
	}
	w.settle()
	return w
}

// withinLimit looks whether no more is held than the limit is, which never falls.
func (w *estateWalk) withinLimit() bool {
	if sum := w.held(); sum.Max(w.limit) != w.limit {
		say(&w.wrong, "%v are held, the limit is %v", sum, w.limit)
	}
	return w.wrong == ""
}

// settle lets everything arrive and has every lost node recovered. Then all is held that may be:
// of what a node of the version before had recovered, that may be less.
func (w *estateWalk) settle() {
	for range 30 {
		for _, id := range w.nodes {
			if w.lost[id] && w.present(id) {
				w.facts.dead[wordKey{w.staying()[0], id}] = true
			}
		}
		w.wait(5 * time.Second)
		w.deliver(1)
		w.act(1)
		if w.opt.Limits {
			w.mint(true)
		}
		if !w.withinLimit() {
			return
		}
	}
	if sum := w.held(); sum != w.limit {
		say(&w.wrong, "%v are held in the end, want %v", sum, w.limit)
	}
}

// held returns what all who live hold. What is on its way counts for nobody.
func (w *estateWalk) held() (sum Amount) {
	for _, id := range w.living() {
		sum = sum.Add(w.rights[id].Held())
	}
	return sum
}

// living have their disks. Some of them have left.
func (w *estateWalk) living() (all []crdt.NodeID) {
	for _, id := range w.nodes {
		if !w.lost[id] {
			all = append(all, id)
		}
	}
	return all
}

// staying live, and neither have left nor are about to. There is one at least.
func (w *estateWalk) staying() (all []crdt.NodeID) {
	for _, id := range w.living() {
		if _, leaving := w.rights[id].Leaving(); !leaving && w.present(id) {
			all = append(all, id)
		}
	}
	return all
}

func (w *estateWalk) pick(of []crdt.NodeID) crdt.NodeID { return of[w.IntN(len(of))] }

func (w *estateWalk) wait(d time.Duration) {
	w.now = w.now.Add(d)
	for _, id := range w.living() {
		w.rights[id].Expire(w.now)
	}
}

// write has a node's disk write all there is.
func (w *estateWalk) write(id crdt.NodeID) {
	for r := w.rights[id]; r.Writes() != nil; {
		r.Confirmed(w.now)
	}
}

// deliver has what is due arrive with a chance. What is lost is sent again.
func (w *estateWalk) deliver(chance float64) {
	for _, id := range w.living() {
		if !w.facts.known[id] {
			continue // what it sent before comes too late
		}
		for _, gift := range w.rights[id].TransfersDue(w.now) {
			if to := w.facts.heir(gift.To); w.Float64() < chance && !w.lost[to] {
				before := w.rights[to].Held()
				w.rights[to].Receive(gift, w.now)
				w.acknowledge(to, chance)
				if got := w.rights[to].Held().Sub(before); !got.IsZero() {
					w.note(eventReceives, to, id, got.Places)
				}
			}
		}
		if h, due := w.rights[id].HandoverDue(w.now); due && w.Float64() < chance {
			w.handOver(h, chance)
		}
		w.write(id)
	}
}

// handOver delivers the last ledger of a node, unless its successor leaves in turn: then it is sent
// again to the successor's.
func (w *estateWalk) handOver(h Handover, chance float64) {
	from, to := h.Final.Node, w.facts.heir(h.Final.Heir)
	if w.lost[to] {
		return
	}
	if _, leaving := w.rights[to].Leaving(); leaving {
		return
	}
	w.refuseRecovered(to)
	w.rights[to].TakeOver(h, w.now)
	w.acknowledge(to, chance)
	if _, known := w.facts.left[from]; !known && w.rights[to].answersFor(from) {
		w.note(eventTakesOver, to, from, h.Final.gave(h.Final.Heir).Places)
		w.facts.left[from] = h.Final
	}
}

// acknowledge writes what a node has received, and has its acknowledgements arrive with a chance.
func (w *estateWalk) acknowledge(by crdt.NodeID, chance float64) {
	w.write(by)
	for _, a := range w.rights[by].AcksDue(w.now) {
		if !w.lost[a.From] && w.Float64() < chance {
			w.rights[a.From].Acked(a)
		}
	}
}

// present reports whether a node is known, is not dead and has not left.
func (w *estateWalk) present(id crdt.NodeID) bool { return w.facts.known[id] && w.facts.present(id) }
