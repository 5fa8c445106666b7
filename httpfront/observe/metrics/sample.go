package metrics

import "time"

// Sample is what a node is at one moment. Numbers that only grow count from the start of
// the process. The zero value is a node that is not ready and knows nothing.
type Sample struct {
	Node         Node
	Mesh         Mesh
	Disk         Disk
	Front        Front
	Rooms        []Room
	Down         []Down
	Limits       Limits
	Origins      []Origin
	Certificates []Certificate
}

// Node is the node itself.
type Node struct {
	ID, Name, Site, Version string

	Ready   bool // it takes traffic
	Leaving bool // it passes its rights on, and then ends
	StoreOK bool // its disk takes writes; otherwise it gives no tickets
	ClockOK bool // its clock agrees with the others'; otherwise it gives no tickets
	Boot    uint64

	Facts, FactsMost int
	FactsRefused     uint64

	SettingsLeftOut int // rooms, events and rate limits that cannot be beside others

	MessagesRefused uint64 // made no sense, or were not the sender's to say
	MessagesDropped uint64 // came faster than they could be taken in
	Overflow        uint64 // polls, check-ins and ends of sessions lost because a table was full
	StoreFailures   uint64 // writes that the disk did not take

	HistoryBytes   uint64 // of minutes kept
	HistoryRefused uint64 // observations of rooms for which there was no place
	LogDropped     uint64 // lines of the node's own log
}

// Room is one room as this node sees it, over the whole mesh.
type Room struct {
	Zone, Name             string // both from the configuration
	Policy, QueueingMethod string

	Active, Waiting, AdmittedLastMinute int64
	Slots                               int64
	TotalActiveUsers, NewUsersPerMinute int64
	Session                             time.Duration
	FrozenSites                         int // silent, so that what they held is kept for them

	Suspended, QueueAll, DryRun, Resting, EventActive bool

	RoomCounts
	Rights *Rights // nil where they are not the limit
}

// RoomCounts is what has come to this node of a room.
type RoomCounts struct {
	// Requests.
	Bypassed, WouldQueue, Crowded, Shared, Copies uint64

	// Tickets: given, and not given though a place was free, because the
	// store, the clock or the counter did not allow it.
	TicketsGiven, TicketsRefused uint64
}

// Rights is what this node knows and has of a room's rights.
type Rights struct {
	Minted, Held, Free Amount // by all nodes; by this one; of those, usable now

	InUse, Lent, InStock, Borrowed int64

	Alone     bool // the site's counter does not answer
	HasMinter bool // a node is known that makes them
}

// Down is what a node that does not run has of one room.
type Down struct {
	Zone, Room string
	Node, Site string // its name, or its id where that is another's, too
	State      string // down, waiting or recovering
	Capacity   Amount
}

// Amount is a number of rights of each kind.
type Amount struct{ Places, PerMinute int64 }

// Mesh is the links to other nodes.
type Mesh struct {
	Alive, Failed, Left int // peers
	LongestRoundTrip    time.Duration
	LargestClockOffset  time.Duration // of those alive, without its sign

	Links                                     int
	QueuedMessages, QueuedBytes, GossipQueued int
	MeshCounts
}

// MeshCounts is what has gone over the links of this node.
type MeshCounts struct {
	ReceivedBytes, SentBytes          uint64
	RefusedHandshakes, RefusedPeers   uint64
	MalformedFrames, Panics           uint64
	CallsReceived, CallsSent          uint64
	MessagesReceived, MessagesSent    uint64
	MessagesReplaced, MessagesDropped uint64
	GossipDropped                     uint64
}

// Disk is where the data directory lies.
type Disk struct {
	FreeBytes, SizeBytes uint64 // of the file system, for this process
	StoreBytes           uint64 // that the store takes
}

// Front is what HTTP clients meet.
type Front struct {
	Connections      int // open
	RequestsInFlight int

	AccessLines, AccessDropped, AccessErrors uint64 // of the access log
}

// Origin is one of the servers behind the node.
type Origin struct {
	Room     string // whose it is; "" for the rest
	URL      string
	In       bool // it is given requests
	Active   int
	Idle     int
	Tunnels  int
	Requests uint64
	Failures uint64 // of those, not answered
}

// Certificate is one that is shown to visitors.
type Certificate struct {
	Name     string    // the first name in it
	NotAfter time.Time // zero: there is none yet
	OK       bool      // what should be in use is
}
