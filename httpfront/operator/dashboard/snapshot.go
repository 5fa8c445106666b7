package dashboard

import (
	"time"

	"github.com/ropeline/ropeline/node"
)

// Source is what a Handler shows. Its methods are called by several goroutines at a
// time, about once a second; what they return is not changed afterwards by either side.
type Source interface {
	// Snapshot returns the whole mesh as this node sees it.
	Snapshot(now time.Time) Snapshot
	// Room returns one room in detail, and false if there is none of that id.
	Room(id string, now time.Time) (Detail, bool)
}

// Snapshot is a mesh at one moment. Lists may be in any order.
type Snapshot struct {
	Time  time.Time `json:"time"`
	Node  string    `json:"node"` // id of the node that says all this
	Rooms []Room    `json:"rooms"`
	Sites []Site    `json:"sites"`
	Nodes []Node    `json:"nodes"`
	// Down are the nodes whose capacity cannot be used.
	Down []Down `json:"down"`
	// Bootstrap says that no bootstrap node is in the mesh any more, and what to do. "": there is one.
	Bootstrap string `json:"bootstrap,omitempty"`
	// Limits are the rate limits. What they count is that of the nodes that are alive.
	Limits []Limit `json:"limits"`
	// Refused is what operators have set and does not hold, as it cannot beside the rest.
	Refused []Refused `json:"refused"`
}

// What is shown as the status of a node has it.
type (
	Down     = node.DownStatus
	DownRoom = node.DownRoomStatus
	Refused  = node.RefusedStatus
	Amount   = node.AmountStatus
)

// Room is one room over the whole mesh. Settings are those that hold at the moment, an
// event's included. Fields that the status has are named and meant as there.
type Room struct {
	ID     string  `json:"id"`
	Name   string  `json:"name"`
	Zone   string  `json:"zone,omitempty"` // the name space it is in; "": none
	Routes []Route `json:"routes"`

	Policy         string `json:"policy"`
	QueueingMethod string `json:"queueing_method"`
	QueueAll       bool   `json:"queue_all"`
	Suspended      bool   `json:"suspended"`
	DryRun         bool   `json:"dry_run"`         // whoever would wait passes all the same
	Event          *Event `json:"event,omitempty"` // under way, or its pre-queue is; nil: none is

	Active            int64 `json:"active"`
	Waiting           int64 `json:"waiting"`
	AdmittedPerMinute int64 `json:"admitted_per_minute"`
	// WaitSeconds is how long who comes now is expected to wait; nil: nobody can tell.
	WaitSeconds       *int64 `json:"wait_seconds,omitempty"`
	TotalActiveUsers  int64  `json:"total_active_users"`
	NewUsersPerMinute int64  `json:"new_users_per_minute"`

	// Rights is nil where they are not the limit.
	Rights *Rights `json:"rights,omitempty"`

	// RecentWaiting and RecentActive are the last five minutes in steps of ten seconds,
	// oldest first, for a small curve. They may be shorter, or nil.
	RecentActive  []int64 `json:"recent_active,omitempty"`
	RecentWaiting []int64 `json:"recent_waiting,omitempty"`
}

// Route is where a room stands: a host, and a path that requests begin with. An empty
// host is every host.
type Route struct {
	Host string `json:"host"`
	Path string `json:"path"`
}

// Event overrides a room's settings for a time. Only Name, Start and End are always
// there; zero and nil leave the room's setting as it is.
type Event struct {
	ID                string     `json:"id"`
	Name              string     `json:"name"`
	Active            bool       `json:"active"`      // its settings hold
	Prequeueing       bool       `json:"prequeueing"` // new visitors wait for the start
	Shuffle           bool       `json:"shuffle_at_event_start"`
	Suspended         bool       `json:"suspended"`
	PrequeueStart     *time.Time `json:"prequeue_start_time,omitempty"`
	Start             time.Time  `json:"event_start_time"`
	End               time.Time  `json:"event_end_time"`
	TotalActiveUsers  int64      `json:"total_active_users,omitempty"`
	NewUsersPerMinute int64      `json:"new_users_per_minute,omitempty"`
	QueueingMethod    string     `json:"queueing_method,omitempty"`
}

// Rights are those of one room at all nodes, of one node in all rooms, or of a site in
// one room.
type Rights struct {
	Minted   Amount `json:"minted,omitzero"`  // of a room only
	Minter   string `json:"minter,omitempty"` // of a room only: id of the node that makes them; "": none does
	Held     Amount `json:"held"`
	Free     Amount `json:"free"`
	InUse    int64  `json:"in_use"`
	Borrowed int64  `json:"borrowed"` // sessions that go on without a right
}

// Site is a site with all its nodes.
type Site struct {
	Site   string `json:"site"` // name
	Frozen bool   `json:"frozen"`
	// Silent is since when nothing was heard of it; nil: it is heard.
	Silent *time.Time `json:"silent_since,omitempty"`
}

// Node is one process of the mesh.
type Node struct {
	Node    string `json:"node"` // id
	Name    string `json:"name"`
	Site    string `json:"site"`
	Address string `json:"address"`
	Boot    uint64 `json:"boot"`
	Version string `json:"version"`
	State   string `json:"state"` // alive, failed or left
	Ready   bool   `json:"ready"`
	Reason  string `json:"reason,omitempty"` // why not ready
	Leaving bool   `json:"leaving"`
	Store   string `json:"store"` // "ok", or why it gives no tickets
	Clock   string `json:"clock"` // "ok" or "off"

	ClockOffset time.Duration `json:"clock_offset_ns"`
	// RTTs are the round-trip times to the other nodes, by id.
	// Nodes whose time is not known are left out.
	RTTs map[string]time.Duration `json:"rtts_ns"`

	// Leads are the ids of the rooms for which it is its site's counter.
	Leads []string `json:"leads"`
	// Rights are those it owns, of all rooms together.
	Rights Rights `json:"rights"`

	// Limits is how it gets by with its memory for rate limits; nil: it has not said.
	Limits *LimitMemory `json:"limits,omitempty"`

	// Origins are the servers of the sites behind it.
	Origins []Origin `json:"origins,omitempty"`
}

// Origin is one server of a site, as a node sees it. Fields are meant as in the status of the node.
type Origin struct {
	Room        string         `json:"room"` // whose it is by name; "": of all requests that no other is for
	URL         string         `json:"url"`
	State       string         `json:"state"`     // in, ejected, trial or down
	SiteDown    bool           `json:"site_down"` // none of the origins of the same site is in
	Active      int            `json:"active"`    // requests that are with it
	Requests    uint64         `json:"recent_requests"`
	ErrorRate   float64        `json:"error_rate"`
	P50         time.Duration  `json:"p50_ns"`
	P99         time.Duration  `json:"p99_ns"`
	LastFailure *OriginFailure `json:"last_failure,omitempty"`
}

// OriginFailure is a request that an origin failed.
type OriginFailure struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Detail is what is shown of one room beside its Room.
type Detail struct {
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	// Settings are the room's own, which an event may override for a time.
	Settings Settings `json:"settings"`
	// SessionSeconds is how long a session lasts without a request.
	SessionSeconds float64 `json:"session_duration_seconds"`
	// Buckets are those of the queue that are not empty, oldest first.
	Buckets []Bucket `json:"buckets"`
	// Cursor is before whom it is everybody's turn; nil: there is none.
	Cursor *time.Time  `json:"cursor,omitempty"`
	Sites  []SiteShare `json:"sites"`
	Events []Event     `json:"events"`
}

// Settings are those of a room that can be changed on the page, and are not in its Room.
type Settings struct {
	TotalActiveUsers  int64 `json:"total_active_users"`
	NewUsersPerMinute int64 `json:"new_users_per_minute"`
}

// Bucket is how many wait who came in the same span.
type Bucket struct {
	Arrived time.Time `json:"arrived"` // when the span began
	Seconds float64   `json:"seconds"` // how long it is
	Waiting int64     `json:"waiting"`
}

// SiteShare is one site's part of a room.
type SiteShare struct {
	Site    string  `json:"site"`
	Active  int64   `json:"active"`
	Waiting int64   `json:"waiting"`
	Frozen  bool    `json:"frozen"`
	Counter string  `json:"site_counter,omitempty"` // id of the node that leads; "": none does
	Rights  *Rights `json:"rights,omitempty"`
}
