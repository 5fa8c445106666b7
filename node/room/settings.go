package room

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Method is the order in which waiting visitors are let in.
type Method string

// Policy says how many visitors a node may admit by itself.
type Policy string

const (
	FIFO        Method = "fifo"        // oldest first
	Passthrough Method = "passthrough" // count and admit

	Even  Policy = "even"  // the site's share, divided by its nodes
	Curve Policy = "curve" // more than an even part while the room is empty
	Open  Policy = "open"  // admit everybody, measure only
)

// Settings are the limits and rules of one room, as the operator wrote them.
type Settings struct {
	ID           crdt.RoomID
	Name         string
	Host         string // exact host; "" matches every host
	Path         string // case-sensitive prefix; "" means "/"
	CookieSuffix string // appended to the cookie's name after "_"

	TotalActiveUsers   int // 1 … 2147483647
	NewUsersPerMinute  int // 1 … 2147483647
	SessionDuration    time.Duration
	QueueingMethod     Method
	Policy             Policy
	CurveFactor        float64       // exponent of Curve, 0 … 8; default 1
	BucketSpan         time.Duration // 1 s … 60 s; default 60 s
	RefreshInterval    time.Duration // how often a waiting visitor asks; default 20 s
	PlaceKept          time.Duration // how long after the last poll; default 5 min
	QueueingStatusCode int           // 200, 202 or 429; default 200
}

// Visitor is what a decision needs to know of one visitor. The zero value is a
// new visitor.
type Visitor struct {
	Arrival    time.Time     // first asked; zero: new
	LastPoll   time.Time     // last request that counted
	Refresh    time.Duration // the interval the visitor was told
	AcceptedAt time.Time     // zero: not admitted yet
	LeaseEnd   time.Time     // zero: not admitted yet
}

// Estimate is what a waiting visitor is told.
type Estimate struct {
	Known    bool // whether Minutes means anything
	Minutes  int  // rounded up
	Position int  // 1 is next; 0 is unknown
	Ahead    int  // people before this visitor
}
