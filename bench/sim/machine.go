package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// brain is what decides at a node. A run has the shipped one; tests have some
// that are wrong on purpose, to see that the figures show it.
type brain interface {
	// These are as node.Core has them.
	Tick(now time.Time) []node.Message
	Flush(now time.Time) []node.Message
	Receive(from replica.Peer, kind uint8, payload []byte, now time.Time) ([]node.Message, error)
	SetPeers(peers []replica.Peer, now time.Time)
	SetGone(sites []string)
	Ready() bool
	Conflict() error
	Writes() []durable.Write
	Written(err error, now time.Time) []node.Message
	Stored() []durable.Write
	StoreBack(now time.Time)
	Configure(s room.Settings, now time.Time) error
	SetClock(ok bool, ahead time.Duration, now time.Time) []node.Message
	Leave(now time.Time) error
	Left() bool
	HeardOf(id crdt.NodeID) bool
	DeclareDead(id crdt.NodeID, now time.Time) error
	Retire(id crdt.RoomID, now time.Time) error

	begin(p node.Pass, known bool, now time.Time, done func(node.Verdict)) (v node.Verdict, ok bool)
	seen() (active, waiting int)
	snapshot() ([]byte, error)
	noted() bool // all that it was told is on disk
	rights() rights
}

// birth is what a brain is started with.
type birth struct {
	identity
	room     room.Settings
	seed     uint64
	state    []byte // nil or the counts that an earlier start has saved
	stored   []durable.Write
	founds   bool // the first node of the mesh, which gives the room its rights
	leaveOut ticket.Rules
}

// newBrain starts a brain.
type newBrain func(b birth, now time.Time) (brain, error)

// identity is one node's name in the mesh: it survives a restart, not a wipe.
type identity struct {
	number  int32 // in the registry
	id      crdt.NodeID
	machine int32
	site    string
	boot    uint64
}

// shipped is the brain of production.
type shipped struct {
	*node.Core
	self crdt.NodeID
	room room.Settings // as it was started with
}

var _ brain = (*shipped)(nil)

func newShipped(b birth, now time.Time) (brain, error) {
	number := uint64(b.number)
	core, err := node.NewCore(node.CoreConfig{
		Self: crdt.Incarnation{Node: b.id, Boot: b.boot}, Site: b.site, Rooms: []room.Settings{b.room},
		OwnerKey: []byte("key of the simulated mesh"),
		Rand:     rand.New(rand.NewPCG(keyed(b.seed, forNodes, number, b.boot), number)),
		Entropy:  entropy(b.seed, number, b.boot),
		Stored:   b.stored, Found: b.founds, LeaveOut: b.leaveOut,
	})
	if err != nil {
		return nil, err
	}
	if b.state != nil {
		if err := core.Restore([][]byte{b.state}, now); err != nil {
			return nil, err
		}
	}
	return &shipped{core, b.id, b.room}, nil
}

// now returns the room by now: it may have been made again.
func (b *shipped) now() *node.Room { return b.Route(b.room.Host, b.room.Path) }

func (b *shipped) begin(p node.Pass, known bool, now time.Time, done func(node.Verdict)) (node.Verdict, bool) {
	return b.now().Begin(p, known, now, done)
}

func (b *shipped) seen() (active, waiting int) {
	v := b.now().View()
	return v.Active, v.Waiting
}

func (b *shipped) snapshot() ([]byte, error) { return b.AppendSnapshot(nil) }

func (b *shipped) noted() bool { return b.Noted(b.Told()) }

func (b *shipped) rights() rights {
	of := b.now()
	r := of.Rights()
	return rights{
		room: of.Settings().ID, retired: r.Retired, makes: r.Minter == b.self,
		held: r.Held, mine: r.Minted, minted: r.MintedByAll, limit: r.Limit, borrowed: r.Borrowed,
	}
}

// machine is one node of the mesh with all that is outside of its brain. brain
// is nil while it is down.
type machine struct {
	identity
	no      int32 // among all
	siteNo  int32
	place   int // in its site, from 0
	brain   brain
	started uint32 // how often; what is meant for an earlier start is dropped
	clock   clock

	joined bool // has heard once who else lives
	paused bool
	inbox  []letter // while paused
	disk   *disk

	away    bool          // has not joined yet, or has handed over and is gone for good
	leaving bool          // is to hand over, or does
	founds  bool          // makes rooms that nobody has made
	wiped   bool          // its disk is lost and there is no new one yet
	lost    []crdt.NodeID // the names it had on disks that are lost, not declared dead
	told    []burial      // what operators have told it on the disk that it has

	policy room.Policy // as operators want it
	goesBy room.Policy // as it has been told
	unsaid []int       // changes of limits, by number, that are not on its disk yet
	stale  int         // so many ticks it has gone by limits that it should not any more

	seen   standing // as membership has it
	notice notice
	wipes  int
	sent   traffic
}

// inboxSize is how many messages a node that does nothing keeps, as the shell of
// a real one does.
const inboxSize = 4096

// name is how faults name a node.
func (m *machine) name() string { return fmt.Sprintf("%d.%d", m.siteNo+1, m.place+1) }

// answers reports whether visitors get an answer.
func (m *machine) answers() bool { return m.brain != nil && !m.paused && m.brain.Ready() }

// runs reports whether the node does anything at all.
func (m *machine) runs() bool { return m.brain != nil && !m.paused }

// registry knows every identity that the run has seen.
type registry struct {
	ids  []identity
	byID map[crdt.NodeID]int32

	rooms []crdt.RoomID // those after the first, in the order in which they were made
}

// add makes a new identity for a machine, its nth.
func (r *registry) add(seed uint64, m *machine, nth int) identity {
	a, b := keyed(seed, forIDs, uint64(m.no), uint64(2*nth)), keyed(seed, forIDs, uint64(m.no), uint64(2*nth+1))
	var id crdt.NodeID
	for i := range 8 {
		id[i], id[8+i] = byte(a>>(8*i)), byte(b>>(8*i))
	}
	r.ids = append(r.ids, identity{number: int32(len(r.ids)), id: id, machine: m.no, site: siteName(m.siteNo)})
	r.byID[id] = int32(len(r.ids) - 1)
	return r.ids[len(r.ids)-1]
}

// of returns the number of an identity; -1 for one that nobody ever had.
func (r *registry) of(id crdt.NodeID) int32 {
	if i, ok := r.byID[id]; ok {
		return i
	}
	return -1
}

// siteName has a width, so that names sort as numbers do.
func siteName(no int32) string { return fmt.Sprintf("site-%03d", no+1) }

// clock is a node's clock, and that of its machine. A node takes the time from there
// when it starts, and counts on by itself: whatever the machine's clock does
// meanwhile, the node's does not jump.
type clock struct {
	wall   int64   // ns that the machine's is ahead of the true time
	offset int64   // as wall was when the node started
	drift  float64 // gained per time passed
}

// at returns what the node's clock shows at a true time.
func (c clock) at(now int64) time.Time {
	return time.Unix(0, Epoch().UnixNano()+now+c.offset+int64(float64(now)*c.drift))
}
