package room

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Method is the order in which waiting visitors are let in.
type Method string

// Policy says how many visitors a node may admit by itself.
type Policy string

const (
	FIFO        Method = "fifo"        // oldest first
	Random      Method = "random"      // whoever asks when a place is free; nobody may ask too often
	Passthrough Method = "passthrough" // count and admit
	Reject      Method = "reject"      // nobody enters, nobody queues

	Escrow  Policy = "escrow"  // tickets against rights that nodes own: the limit holds whatever happens
	Even    Policy = "even"    // the site's share, divided by its nodes
	Curve   Policy = "curve"   // more than an even part while the room is empty
	Counter Policy = "counter" // tickets of the site's counter, then of the room's anywhere counter
	Open    Policy = "open"    // admit everybody, measure only
)

// OnPartition says what becomes of a session whose anchor is out of reach while
// no right is free where the visitor is. It matters under Escrow only.
type OnPartition string

const (
	// PartitionHold: the session lasts until the end that its pass has, and then
	// the visitor is first in line. The limit is never passed.
	PartitionHold OnPartition = "hold"

	// PartitionOpen: the session goes on without a right. It is counted apart
	// and repaid with the next right that comes free; until then the limit may be
	// passed by as many.
	PartitionOpen OnPartition = "open"
)

// OriginCommand is what the protected site may tell the room in a header field
// of an answer.
type OriginCommand string

// Revoke ends the session of the visitor whom the answer is for.
const Revoke OriginCommand = "revoke"

// Settings are the limits and rules of one room, as the operator wrote them.
type Settings struct {
	ID           crdt.RoomID
	Name         string
	Host         string // exact, as by NormalHost; "" matches every host
	Path         string // case-sensitive prefix, as by RoutePath; "" means "/"
	CookieSuffix string // appended to the cookie's name after "_"

	// AdditionalRoutes are where requests meet the room as well; at most MaxRoutes.
	// No two rooms of a node have the same one. They need a CookieSuffix.
	AdditionalRoutes []Route

	TotalActiveUsers   int // 1 … 2147483647
	NewUsersPerMinute  int // 1 … 2147483647
	SessionDuration    time.Duration
	QueueingMethod     Method
	Policy             Policy        // default Escrow
	CurveFactor        float64       // exponent of Curve, 0 … 8; default 1
	BucketSpan         time.Duration // 1 s … 60 s; default 60 s
	RefreshInterval    time.Duration // how often a waiting visitor asks, if not near the head; see View.Told; default 20 s
	PlaceKept          time.Duration // how long after the last poll; default 5 min
	QueueingStatusCode int           // 200, 202 or 429; default 200

	QueueAll              bool            // nobody is let in; who is inside stays
	Suspended             bool            // all requests pass untouched, nothing is counted
	DryRun                bool            // all is decided and counted, and whoever would wait passes all the same
	AdmitsWhileDown       bool            // new visitors are let in also while no origin of the site is healthy
	DisableSessionRenewal bool            // a session ends when its first lease does
	EnabledOriginCommands []OriginCommand // what the site may tell the room

	// OnPartition is what a cut costs: a session now and then, or the limit.
	// Default PartitionHold.
	OnPartition OnPartition

	// ShareFreeze is how long a site that has fallen silent keeps its share, so
	// that neither side of a cut counts itself as the whole. Default 15 min;
	// negative: not at all. Under Escrow there is nothing to keep: rights stay
	// where they are.
	ShareFreeze time.Duration

	Events []Event // at most MaxEvents; none overlaps another

	Front Front // what the front alone goes by
}

// Clone returns a copy that shares nothing that can be changed.
func (s Settings) Clone() Settings {
	s.AdditionalRoutes = slices.Clone(s.AdditionalRoutes)
	s.EnabledOriginCommands = slices.Clone(s.EnabledOriginCommands)
	s.Events = slices.Clone(s.Events)
	s.Front = s.Front.clone()
	return s
}

// Event overrides settings of a room for a time. A nil override inherits the
// room's setting. The two limits are overridden together or not at all.
type Event struct {
	Name          string
	Start         time.Time // at least a minute before End
	End           time.Time
	PrequeueStart time.Time // zero: no pre-queue; else at least 5 min before Start
	Shuffle       bool      // at Start, those of the pre-queue get places at random
	Suspended     bool      // the event does not happen

	TotalActiveUsers      *int
	NewUsersPerMinute     *int
	SessionDuration       *time.Duration
	QueueingMethod        *Method
	DisableSessionRenewal *bool
	CustomPage            *string // from the pre-queue on, since it tells of it; Front has the others
}

// Visitor is what a decision needs to know of one visitor. The zero value is a
// new visitor.
type Visitor struct {
	Arrival    time.Time     // first asked; zero: new
	Place      time.Time     // in the order of the queue; zero: Arrival
	LastPoll   time.Time     // last request that counted
	Refresh    time.Duration // the interval the visitor was told
	AcceptedAt time.Time     // zero: not admitted yet
	LeaseEnd   time.Time     // zero: not admitted yet
}
