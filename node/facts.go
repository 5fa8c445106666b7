package node

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// What the whole mesh knows of rooms and nodes: facts, each under a key of the
// last-writer map that the replicas keep in step.
//
//	limits/<room>         how many rights there shall be
//	minter/<room>         the node that makes them
//	minted/<room>/<node>  how many it has made; each minter writes its own
//	session/<room>        how long sessions are, for nodes that only keep rights of it
//	told/<room>/<node>    what a node says of it: see said
//	rests/<room>/<node>   the same, of one that keeps rights of it without having it configured
//	retired/<room>        the room is gone for good
//	mesh/<mesh>           its record, once capacity may be minted in it
//	node/<node>           a node that may own rights, and its site
//	name/<node>           what its operator calls it
//	left/<node>           its heir: the node has left
//	over/<node>           the node has left and says nothing more; only it writes this
//	dead/<node>/<heir>    the node is lost, an operator said at its heir
//	final/<room>/<node>   the last ledger of a node that has left
//	knew/<room>/<node>    what it knows to be minted, where others may never hear it from who did
//	word/<room>/<dead>/<node>  what a node has dealt with a lost one
//	recovered/<room>/<dead>    who has its rights, and what it had minted

const (
	factLimits  = "limits"
	factMinter  = "minter"
	factMinted  = "minted"
	factSession = "session"
	factTold    = "told"
	factRests   = "rests"
	factRetired = "retired"
	factNode    = "node"
	factName    = "name"
	factLeft    = "left"
	factOver    = "over"
	factDead    = "dead"
	factFinal   = "final"
	factKnew    = "knew"
	factWord    = "word"

	factRecovered = "recovered"
)

const factVersion = 1

// maxSession is as long as a session can be.
const maxSession = 24 * time.Hour

// facts is what this node has read of the map. Create it with newFacts.
type facts struct {
	replica  *replica.Replica
	leaveOut ticket.Rules
	read     uint64 // MapChanges when it was read
	begun    bool
	reading  uint64 // how often it was read

	rooms map[crdt.RoomID]*roomFacts
	sites map[crdt.NodeID]string        // of nodes that may own rights
	names map[crdt.NodeID]string        // of the same, as far as they have told
	left  map[crdt.NodeID]crdt.NodeID   // to their heirs
	dead  map[crdt.NodeID]crdt.NodeID   // the same; of several heirs the least
	named map[crdt.NodeID][]crdt.NodeID // of the dead: all heirs, in no order

	catalog uint64 // changes with what the map holds of the catalog

	unheard map[crdt.RoomID]bool // rooms of which something minted is known from others than who minted it
}

// roomFacts is what is known of one room. Absent limits are zero.
type roomFacts struct {
	limits    ticket.Amount
	session   time.Duration          // zero: not known
	minter    crdt.NodeID            // zero: nobody
	by        perNode[ticket.Amount] // minted by each, as it has told
	retired   bool
	finals    map[crdt.NodeID]ticket.Final
	knew      []ticket.Told          // in no order
	words     []ticket.Word          // on the dead; in order
	kept      perNode[time.Duration] // who has ever had a ledger of it: the longest session with a ticket of each, as it has said
	again     map[crdt.NodeID]recovered
	inherited map[crdt.NodeID]crdt.NodeID   // who had taken over from each, and left in turn: their last ledgers say so
	counted   map[crdt.NodeID]ticket.Amount // minted by nodes that have left, as last ledgers say: exact
}

// noteFact notes something of a node. The map is made with the first of what it holds.
func noteFact[V any](m *map[crdt.NodeID]V, of crdt.NodeID, is V) {
	if *m == nil {
		*m = map[crdt.NodeID]V{}
	}
	(*m)[of] = is
}

// recovered says who has the rights of a lost node, and what that had minted as far
// as it was known then: that is what counts from then on.
type recovered struct {
	by     crdt.NodeID
	minted ticket.Amount
}

// mintedBy returns what a node has minted, as far as it counts. Of one that has left, its
// last ledger says it: what it told before may be older.
func (r *roomFacts) mintedBy(id crdt.NodeID) ticket.Amount {
	if x, ok := r.again[id]; ok {
		return x.minted
	}
	if a, ok := r.counted[id]; ok {
		return a
	}
	return r.by.of(id)
}

// mintedByEach returns what each node has minted, as far as it counts, each once.
func (r *roomFacts) mintedByEach() iter.Seq2[crdt.NodeID, ticket.Amount] {
	return func(yield func(crdt.NodeID, ticket.Amount) bool) {
		for id := range r.by.all() {
			if !yield(id, r.mintedBy(id)) {
				return
			}
		}
		for id := range r.again {
			if !r.by.has(id) && !yield(id, r.mintedBy(id)) {
				return
			}
		}
		for id := range r.counted {
			if _, done := r.again[id]; !done && !r.by.has(id) && !yield(id, r.mintedBy(id)) {
				return
			}
		}
	}
}

func newFacts(r *replica.Replica, leaveOut ticket.Rules) facts {
	return facts{replica: r, leaveOut: leaveOut}
}

// noFacts is what is known of a room of which nothing is.
var noFacts = &roomFacts{}

// room returns what is known of a room. It is for reading.
func (f *facts) room(id crdt.RoomID) *roomFacts {
	if r := f.rooms[id]; r != nil {
		return r
	}
	return noFacts
}

// update reads the map if it has changed, and reports whether it had. What does
// not decode is nobody's fact: it is passed over.
func (f *facts) update() bool {
	if n := f.replica.MapChanges(); f.begun && n == f.read {
		return false
	} else {
		f.read, f.begun = n, true
	}
	f.reading++
	f.rooms, f.sites = map[crdt.RoomID]*roomFacts{}, map[crdt.NodeID]string{}
	f.left, f.dead = map[crdt.NodeID]crdt.NodeID{}, map[crdt.NodeID]crdt.NodeID{}
	f.named, f.names = map[crdt.NodeID][]crdt.NodeID{}, map[crdt.NodeID]string{}
	f.catalog, f.unheard = 0, nil
	for key, at := range f.replica.Stamps() {
		if catalog.IsKey(key) {
			f.catalog += catalogMark(key, at)
		} else if value, _, ok := f.replica.Get(key); ok {
			f.take(key, value, at)
		}
	}
	for _, r := range f.rooms {
		slices.SortFunc(r.words, func(a, b ticket.Word) int {
			return cmp.Or(compareNodes(a.Dead, b.Dead), compareNodes(a.Node, b.Node))
		})
		r.takeFinals(f.leaveOut)
	}
	return true
}

// take reads one fact. Each fills a part of its own, so their order does not
// matter.
func (f *facts) take(key string, value []byte, at crdt.Stamp) {
	kind, rest, _ := strings.Cut(key, "/")
	switch kind {
	case factNode, factName, factLeft, factDead:
		name, heir, _ := strings.Cut(rest, "/")
		if id, err := crdt.ParseNodeID(name); err == nil {
			f.takeNode(kind, id, heir, value)
		}
	case factLimits, factSession, factMinter, factMinted, factTold, factRests, factRetired, factFinal, factKnew, factWord, factRecovered:
		name, of, _ := strings.Cut(rest, "/")
		if id, err := crdt.ParseRoomID(name); err == nil {
			f.takeRoom(kind, id, of, value)
			if kind == factMinted && !f.replica.HoldsUpTo(at) {
				f.noteUnheard(id)
			}
		}
	}
}

func (f *facts) noteUnheard(id crdt.RoomID) {
	if f.unheard == nil {
		f.unheard = map[crdt.RoomID]bool{}
	}
	f.unheard[id] = true
}

func (f *facts) takeNode(kind string, id crdt.NodeID, named string, value []byte) {
	switch kind {
	case factNode:
		f.sites[id] = string(value)
	case factName:
		f.names[id] = string(value)
	case factLeft:
		if heir, ok := nodeIn(value); ok && heir != id {
			f.left[id] = heir
		}
	case factDead:
		heir, err := crdt.ParseNodeID(named)
		if err != nil || heir == id {
			return
		}
		f.named[id] = append(f.named[id], heir)
		if was, ok := f.dead[id]; !ok || compareNodes(heir, was) < 0 {
			f.dead[id] = heir
		}
	}
}

func (f *facts) takeRoom(kind string, id crdt.RoomID, of string, value []byte) {
	r := f.rooms[id]
	if r == nil {
		r = &roomFacts{}
		f.rooms[id] = r
	}
	switch kind {
	case factLimits:
		if a, err := decodeAmount(value); err == nil && a.Places > 0 && a.Rate > 0 {
			r.limits = a
		}
	case factSession:
		if ms, err := strconv.ParseInt(string(value), 10, 64); err == nil && ms > 0 && ms <= maxSession.Milliseconds() {
			r.session = time.Duration(ms) * time.Millisecond
		}
	case factMinter:
		if node, ok := nodeIn(value); ok {
			r.minter = node
		}
	case factRetired:
		r.retired = true
	case factMinted:
		a, err := decodeAmount(value)
		if node, badID := crdt.ParseNodeID(of); err == nil && badID == nil {
			r.by.set(node, a)
		}
	case factTold, factRests:
		if node, err := crdt.ParseNodeID(of); err == nil {
			longest := r.kept.of(node) // it may have come to rest, or to be configured
			if s, err := decodeSaid(value); err == nil {
				longest = max(longest, s.session)
			}
			r.kept.set(node, longest)
		}
	case factFinal:
		final, err := ticket.DecodeFinal(value)
		if node, badID := crdt.ParseNodeID(of); err == nil && badID == nil && final.Node == node {
			noteFact(&r.finals, node, final)
		}
	case factKnew:
		if told, err := ticket.DecodeTold(value); err == nil {
			r.knew = append(r.knew, told...)
		}
	case factRecovered:
		dead, badID := crdt.ParseNodeID(of)
		if len(value) < len(dead) || badID != nil {
			return
		}
		by, _ := nodeIn(value[:len(dead)])
		if a, err := decodeAmount(value[len(dead):]); err == nil {
			noteFact(&r.again, dead, recovered{by, a})
		}
	case factWord:
		if w, err := ticket.DecodeWord(value); err == nil && of == w.Dead.String()+"/"+w.Node.String() {
			r.words = append(r.words, w)
		}
	}
}

// takeFinals has whoever passed on the rights of lost nodes with its own be known to
// have recovered them, also where that was never heard of itself, and notes what those
// who have left had minted.
func (r *roomFacts) takeFinals(leaveOut ticket.Rules) {
	for _, id := range slices.SortedFunc(maps.Keys(r.finals), compareNodes) {
		f := r.finals[id]
		for _, x := range f.Recovered {
			if _, known := r.again[x.Dead]; !known {
				noteFact(&r.again, x.Dead, recovered{id, x.Minted})
			}
		}
		is := f.Counted(leaveOut)
		if !is.Known && len(f.Recovered) > 0 && leaveOut&ticket.FreshMint == 0 {
			is = ticket.Minting{Known: true, Minted: r.by.of(id).Max(f.Accounted())}
		}
		r.count(id, is)
		for _, x := range f.Inherited {
			r.count(x.Leaver, x.Minting)
			noteFact(&r.inherited, x.Leaver, id)
		}
	}
}

func (r *roomFacts) count(leaver crdt.NodeID, is ticket.Minting) {
	if is.Known {
		noteFact(&r.counted, leaver, is.Minted)
	}
}

func nodeIn(value []byte) (id crdt.NodeID, ok bool) {
	copy(id[:], value)
	return id, len(value) == len(id)
}

// set writes a fact unless it is known as such.
func (f *facts) set(key string, value []byte, now time.Time) error {
	if known, _, ok := f.replica.Get(key); ok && bytes.Equal(known, value) {
		return nil
	}
	if err := f.replica.Set(key, value, now); err != nil {
		return fmt.Errorf("fact: %w", err)
	}
	return nil
}

func roomKey(kind string, id crdt.RoomID) string { return kind + "/" + hex.EncodeToString(id[:]) }

func nodeKey(kind string, id crdt.NodeID) string { return kind + "/" + hex.EncodeToString(id[:]) }

func roomNodeKey(kind string, id crdt.RoomID, node crdt.NodeID) string {
	return roomKey(kind, id) + "/" + hex.EncodeToString(node[:])
}

// encodeSession writes a duration as whole milliseconds, in digits.
func encodeSession(d time.Duration) []byte { return strconv.AppendInt(nil, d.Milliseconds(), 10) }

// encodeAmount writes [version, places, rate].
func encodeAmount(a ticket.Amount) []byte {
	var buf bytes.Buffer
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	e.EncodeArrayLen(3)
	e.EncodeUint(factVersion)
	e.EncodeInt(a.Places)
	e.EncodeInt(a.Rate)
	return buf.Bytes()
}

// maxAmount is more rights than any room has, and so few that no sum wraps.
const maxAmount = 1 << 40

func decodeAmount(value []byte) (a ticket.Amount, err error) {
	r := bytes.NewReader(value)
	d := msgpack.NewDecoder(r)
	if err := expectHeader(d, 3, factVersion); err != nil {
		return a, err
	}
	err = errors.Join(decodeInto(&a.Places, d.DecodeInt64), decodeInto(&a.Rate, d.DecodeInt64))
	if err != nil || r.Len() > 0 || max(a.Places, a.Rate) > maxAmount || min(a.Places, a.Rate) < -maxAmount {
		return ticket.Amount{}, fmt.Errorf("%w: amount", errMalformed)
	}
	return a, nil
}
