package node

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/ropeline/ropeline/crdt"
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
//	came/<node>           a node that has come to the mesh, and its site: said by who told it what there is
//	node/<node>           a node that may own rights, and its site
//	start/<node>          its newest start; see starting
//	name/<node>           what its operator calls it
//	left/<node>           its heir: the node has left
//	over/<node>           the node has left and says nothing more; only it writes this
//	dead/<node>/<heir>    the node is lost, an operator said at its heir
//	final/<room>/<node>   the last ledger of a node that has left
//	knew/<room>/<node>    what it knows to be minted, where others may never hear it from who did
//	closed/<room>/<node>  what it has dealt with nodes that are gone; see closings.go
//	forgot/<node>         how far it is with forgetting these
//	word/<room>/<dead>/<node>  what a node has dealt with a lost one
//	recovered/<room>/<dead>    who has its rights, what it had minted, and in which turn it was recovered first

const (
	factLimits  = "limits"
	factMinter  = "minter"
	factMinted  = "minted"
	factSession = "session"
	factTold    = "told"
	factRests   = "rests"
	factRetired = "retired"
	factCame    = "came"
	factNode    = "node"
	factName    = "name"
	factLeft    = "left"
	factOver    = "over"
	factDead    = "dead"
	factFinal   = "final"
	factKnew    = "knew"
	factWord    = "word"
	factClosed  = "closed"
	factForgot  = "forgot"

	factRecovered = "recovered"
)

const factVersion = 1

// maxSession is as long as a session can be.
const maxSession = 24 * time.Hour

// facts is what this node has read of the map. Create it with newFacts.
//
// What is read is numbered: a number goes with whatever it has changed, so that who has looked at
// something knows whether to look again.
type facts struct {
	replica  *replica.Replica
	leaveOut ticket.Rules
	at       uint64 // MapChanges when it was read
	reading  uint64 // how often something was read
	nodes    uint64 // the last reading that was of more than of single rooms and of the catalog
	catalog  uint64 // the last that was of the catalog

	news  bool                     // something was read that rooms have not heeded
	fresh map[crdt.RoomID]struct{} // the rooms of which it was

	rooms map[crdt.RoomID]*roomFacts
	came  map[crdt.NodeID]string        // the sites of nodes that others have let in
	sites map[crdt.NodeID]string        // of nodes that may own rights
	names map[crdt.NodeID]string        // of the same, as far as they have told
	left  map[crdt.NodeID]crdt.NodeID   // to their heirs
	dead  map[crdt.NodeID]crdt.NodeID   // the same; of several heirs the least
	named map[crdt.NodeID][]crdt.NodeID // of the dead: all heirs, in no order

	forgot map[crdt.NodeID]forgot

	unheard map[string]crdt.Stamp // keys of what is known from others than who wrote it, which may have written more before
}

// roomFacts is what is known of one room. Absent limits are zero.
type roomFacts struct {
	reading uint64 // the last that was of this room

	limits  ticket.Amount
	session time.Duration          // zero: not known
	minter  crdt.NodeID            // zero: nobody
	by      perNode[ticket.Amount] // minted by each, as it has told
	retired bool
	finals  map[crdt.NodeID]ticket.Final
	knew    perNode[[]ticket.Told]
	words   []ticket.Word          // on the dead; in order
	kept    perNode[time.Duration] // who has ever had a ledger of it: the longest session with a ticket of each, as it has said
	took    map[crdt.NodeID]recovered

	closings perNode[ticket.Closings]

	// What follows from these; see takeFinals.
	leavers   []crdt.NodeID // of whom finals are, in order
	again     map[crdt.NodeID]recovered
	inherited map[crdt.NodeID]crdt.NodeID   // who had taken over from each, and left in turn: their last ledgers say so
	counted   map[crdt.NodeID]ticket.Amount // minted by nodes that have left, as last ledgers say: exact
	forGood   map[crdt.NodeID]crdt.NodeID   // who has the rights of each for good, with what it had minted
}

// noteFact notes something of a node. The map is made with the first of what it holds.
func noteFact[V any](m *map[crdt.NodeID]V, of crdt.NodeID, is V) {
	if *m == nil {
		*m = map[crdt.NodeID]V{}
	}
	(*m)[of] = is
}

// recovered says who has the rights of a lost node, what that had minted as far
// as it was known then, which is what counts from then on, and in which turn it was recovered first.
type recovered struct {
	by     crdt.NodeID
	minted ticket.Amount
	turn   int64
}

func (x recovered) encode() []byte {
	return append(binary.AppendVarint(slices.Clone(x.by[:]), x.turn), encodeAmount(x.minted)...)
}

func decodeRecovered(value []byte) (x recovered, err error) {
	if len(value) < len(x.by) {
		return x, fmt.Errorf("%w: who has recovered a node", errMalformed)
	}
	x.by, _ = nodeIn(value[:len(x.by)])
	turn, n := binary.Varint(value[len(x.by):])
	if n <= 0 || turn < 0 {
		return x, fmt.Errorf("%w: turn", errMalformed)
	}
	x.turn = turn
	x.minted, err = decodeAmount(value[len(x.by)+n:])
	return x, err
}

// mintedBy returns what a node has minted, and those whose rights it has for good, as far as it counts. Of one that has left, its
// last ledger says it: what it told before may be older.
func (r *roomFacts) mintedBy(id crdt.NodeID) ticket.Amount {
	if x, ok := r.again[id]; ok {
		return x.minted
	}
	if a, ok := r.counted[id]; ok {
		return a
	}
	return r.by.of(id).Add(r.closings.of(id).AllMinted())
}

// mintedItself is mintedBy without those whose rights the node has for good.
func (r *roomFacts) mintedItself(id crdt.NodeID) ticket.Amount {
	return r.mintedBy(id).Sub(r.closingsOf(id).AllMinted())
}

// mintedByEach returns what each node has minted, as far as it counts, each once.
func (r *roomFacts) mintedByEach() iter.Seq2[crdt.NodeID, ticket.Amount] {
	return func(yield func(crdt.NodeID, ticket.Amount) bool) {
		next := func(id crdt.NodeID, before bool) bool {
			return before || r.keptForGood(id) || yield(id, r.mintedBy(id))
		}
		for id := range r.by.all() {
			if !next(id, false) {
				return
			}
		}
		for id := range r.again {
			if !next(id, r.by.has(id)) {
				return
			}
		}
		for id := range r.counted {
			if _, done := r.again[id]; !next(id, done || r.by.has(id)) {
				return
			}
		}
		for id := range r.closings.all() {
			_, done := r.again[id]
			if _, left := r.counted[id]; !next(id, done || left || r.by.has(id)) {
				return
			}
		}
	}
}

func newFacts(r *replica.Replica, leaveOut ticket.Rules) facts {
	return facts{
		replica: r, leaveOut: leaveOut,
		fresh: map[crdt.RoomID]struct{}{}, rooms: map[crdt.RoomID]*roomFacts{},
		came: map[crdt.NodeID]string{}, sites: map[crdt.NodeID]string{}, names: map[crdt.NodeID]string{},
		left: map[crdt.NodeID]crdt.NodeID{}, dead: map[crdt.NodeID]crdt.NodeID{}, named: map[crdt.NodeID][]crdt.NodeID{},
		unheard: map[string]crdt.Stamp{}, forgot: map[crdt.NodeID]forgot{},
	}
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

// readingOf returns the last reading that was of a room, or of all.
func (f *facts) readingOf(id crdt.RoomID) uint64 { return max(f.nodes, f.room(id).reading) }

// takeFinals has whoever passed on the rights of lost nodes with its own be known to
// have recovered them, also where that was never heard of itself, and notes what those
// who have left had minted.
func (r *roomFacts) takeFinals() {
	r.leavers, r.again, r.inherited, r.counted = nil, maps.Clone(r.took), nil, nil
	r.takeClosings()
	if len(r.finals) == 0 {
		return // nearly always
	}
	r.leavers = slices.AppendSeq(make([]crdt.NodeID, 0, len(r.finals)), maps.Keys(r.finals))
	slices.SortFunc(r.leavers, compareNodes)
	for _, id := range r.leavers {
		f := r.finals[id]
		for _, x := range f.Recovered {
			if _, known := r.again[x.Dead]; !known {
				noteFact(&r.again, x.Dead, recovered{id, x.Minted, x.Turn})
			}
		}
		r.count(id, f.Counted())
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
