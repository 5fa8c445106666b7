// Package replica keeps the shared state of a mesh in step: the rows of all
// nodes of a site, the summaries of all sites, and the last-writer map.
//
// It is a state machine. It is given what this node counts, who is there,
// messages and the time; it returns messages. It opens no socket, starts no
// goroutine and reads no clock, so the same lines run in production, in tests
// and in simulations. A Replica is not safe for concurrent use: one goroutine
// owns it.
//
// Sums can be early in one half: the +1 of an admission and the −1 of the same
// visitor's waiting may stand in rows of two nodes. Whoever books both adds to
// active first; then a reader who sees only one sees one visitor too many.
package replica

import (
	"errors"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Peer is one live member of the mesh other than this node, as membership and
// the peer's certificate name it.
type Peer struct {
	ID    crdt.NodeID
	Boot  uint64
	Site  string
	Ready bool // it says that it holds its site's state
}

func (p Peer) incarnation() crdt.Incarnation { return crdt.Incarnation{Node: p.ID, Boot: p.Boot} }

// Config says who the replica is and how often it speaks. Shorter intervals
// bring news sooner and cost bytes in proportion.
type Config struct {
	Self crdt.Incarnation // required
	Site string           // required

	PushInterval    time.Duration // between pushes inside the site; 0: 250 ms
	SummaryInterval time.Duration // between summaries of the site; 0: 1 s
	PullInterval    time.Duration // between digest pulls; 0: 5 s
	MaxMessage      int           // bytes of one message; 0: 256 KiB

	BucketSpan func(crdt.RoomID) time.Duration // of waiting in summaries; nil: 60 s
	Retention  crdt.Retention                  // the same on all nodes
	Rand       *rand.Rand                      // picks the peers of pulls; required

	// Knows reports whether the mesh knows of a node for good: it is on this node's disk that it does. Who joins
	// is told what there is once it is known: see Strangers. Nil: all are known.
	Knows func(crdt.NodeID) bool
}

// Message is one one-way message. A newer one with the same To and Slot may
// replace an older one that has not left yet: each says everything that the
// receiver is not known to have.
type Message struct {
	To      crdt.NodeID
	Slot    uint64
	Payload []byte
}

// SiteCounts is what one site holds of one room.
type SiteCounts struct {
	Site    string
	Counts  crdt.Counts
	Closed  int64     // newest tick whose counts are final at every live node of the site; 0: none
	Changed time.Time // last news of the site
	Own     bool      // summed from rows, waiting by granule; else from a summary, by bucket

	basis crdt.Basis   // of Counts, where Own; zero: not read yet, or changed since
	other *summaryRead // of Counts, where not; nil: not read yet
}

// summaryRead is what the counts of another site were read from.
type summaryRead struct {
	known crdt.Version // of the summary
	at    time.Time
}

// Stats are counts since New. The maps are the caller's.
type Stats struct {
	MessagesOut, BytesOut map[string]uint64 // by message type: push, pull, answer, tell, survey, kept
	MessagesIn            uint64
	Refused               map[string]uint64 // by reason
	Gaps                  uint64            // pieces that arrived with a hole before them
}

// Replica is the state machine.
type Replica struct {
	cfg  Config
	rows crdt.Rows
	sums crdt.Summaries
	lww  crdt.LWW
	hlc  crdt.Clock

	wrote     bool // this node had written into lww before it started
	forgotten bool // see Forgotten

	start  ownStart
	peers  Members
	links  map[crdt.NodeID]*link
	names  siteNames
	order  []*link                // links in order of id; nil: to be worked out
	near   []*link                // those of them that are listed members of our site
	relays map[string]crdt.NodeID // of the other sites
	fill   filling
	timers timers
	lead   leading
	spread spreading

	transfer transfer

	changed  map[crdt.RoomID]struct{} // rooms of what was taken in from others
	drops    uint64                   // how often Drop was called
	conflict *crdt.Incarnation
	stats    Stats
}

// timers hold when each kind of work is due next; zero: at once.
type timers struct {
	push, publish, pull, expire time.Time
	urgent                      time.Time // when an urgent room may go again
}

// New checks cfg and returns a replica that knows nothing. It becomes ready
// after SetPeers has told it whom to ask.
func New(cfg Config) (*Replica, error) {
	switch {
	case cfg.Self == crdt.Incarnation{}:
		return nil, errors.New("replica: no incarnation")
	case cfg.Site == "":
		return nil, errors.New("replica: no site")
	case cfg.Rand == nil:
		return nil, errors.New("replica: no source of random numbers")
	case cfg.PushInterval < 0 || cfg.SummaryInterval < 0 || cfg.PullInterval < 0:
		return nil, errors.New("replica: negative interval")
	case cfg.MaxMessage != 0 && cfg.MaxMessage < minMessage:
		return nil, errors.New("replica: messages too small for one room")
	}
	orDefault(&cfg.PushInterval, 250*time.Millisecond)
	orDefault(&cfg.SummaryInterval, time.Second)
	orDefault(&cfg.PullInterval, 5*time.Second)
	if cfg.MaxMessage == 0 {
		cfg.MaxMessage = 256 << 10
	}
	if cfg.BucketSpan == nil {
		cfg.BucketSpan = func(crdt.RoomID) time.Duration { return time.Minute }
	}
	return &Replica{
		cfg:     cfg,
		links:   make(map[crdt.NodeID]*link),
		relays:  make(map[string]crdt.NodeID),
		changed: make(map[crdt.RoomID]struct{}),
		lead:    leading{urgent: make(map[crdt.RoomID]struct{}), stated: make(map[crdt.RoomID]crdt.Basis)},
		stats:   Stats{MessagesOut: map[string]uint64{}, BytesOut: map[string]uint64{}, Refused: map[string]uint64{}},
	}, nil
}

func orDefault(d *time.Duration, def time.Duration) {
	if *d == 0 {
		*d = def
	}
}

// closeGrace is how long after its end a tick stays open: counts reach the row
// in batches, a little after the fact.
const closeGrace = 2 * time.Second

// open makes our row. That waits for the first call that knows the time, so
// that a state can be restored before.
func (r *Replica) open(now time.Time) {
	if !r.start.opened {
		r.start.opened = true
		if h, ok := r.rows.Header(crdt.Incarnation{Node: r.cfg.Self.Node, Boot: r.lww.LastStart()}); ok {
			r.start.before = h.Changed
		}
		r.rows.Open(r.cfg.Self, r.cfg.Site, now)
	}
}

// Add raises one cell of our own row. What belongs to a tick that is closed is
// booked in the first that is open: history that others may have used for
// shares does not change any more.
func (r *Replica) Add(key crdt.Key, p, n uint64, now time.Time) {
	r.open(now)
	if key.Kind == crdt.Seen || key.Kind == crdt.Admitted {
		if h, _ := r.rows.Header(r.cfg.Self); h.Closed > 0 {
			key.Tick = max(key.Tick, h.Closed+1)
		}
	}
	r.rows.Add(r.cfg.Self, key, p, n, now)
}

// closeTick closes what is past in our row, and so gives its sign of life.
func (r *Replica) closeTick(now time.Time) {
	r.rows.Close(r.cfg.Self, crdt.TickOf(now.Add(-closeGrace))-1, now)
}

// Own returns what our row counts of a room.
func (r *Replica) Own(room crdt.RoomID, now time.Time) crdt.Counts {
	return r.rows.Count(r.cfg.Self, room, now, r.cfg.Retention)
}

// RightsOf sets dst, in its own memory, to what the row of another node counts of a
// room that has to do with rights: Active, Held, HeldRate, and Admitted from a tick on.
func (r *Replica) RightsOf(dst *crdt.Counts, owner crdt.Incarnation, room crdt.RoomID, from int64, now time.Time) {
	dst.Reset()
	r.rows.AddRights(dst, owner, room, from, now, r.cfg.Retention)
}

// CountedRooms yields the rooms of which anything is counted, some more than once, in no order.
func (r *Replica) CountedRooms() iter.Seq[crdt.RoomID] {
	return func(yield func(crdt.RoomID) bool) {
		for room := range r.rows.AllRooms() {
			if !yield(room) {
				return
			}
		}
		for site := range r.sums.Sites() {
			for room := range r.sums.Rooms(site) {
				if !yield(room) {
					return
				}
			}
		}
	}
}

// Drop forgets all that is counted of a room that is gone for good; see crdt.Rows.Drop.
func (r *Replica) Drop(room crdt.RoomID) {
	r.rows.Drop(room)
	r.sums.Drop(room)
	r.drops++
}

// Changed returns the rooms that messages have brought counts of since the last
// call, in no order. Counts also fade with time; that is not told.
func (r *Replica) Changed() []crdt.RoomID {
	rooms := slices.Collect(maps.Keys(r.changed))
	clear(r.changed)
	return rooms
}

// PreviousActive returns how many leases our last start that had any in this
// room may have had in use when it ended, as far as the restored state and the
// peers know; 0 if they know of none.
func (r *Replica) PreviousActive(room crdt.RoomID) int64 {
	return max(0, r.rows.LastActive(r.cfg.Self.Node, r.cfg.Self.Boot, room))
}

// Conflict returns the incarnation of our own id that a peer spoke of though it
// cannot be: with a higher boot number, or this very one with changes that we
// have not made. This node then is a clone, or its disk was rolled back, and it
// must stop: two nodes under one id would issue the same tickets.
func (r *Replica) Conflict() (crdt.Incarnation, bool) {
	if r.conflict == nil {
		return crdt.Incarnation{}, false
	}
	return *r.conflict, true
}
