package limit

import "time"

// Key is what a rule counts requests under: a keyed hash of the rule and of the values of
// its characteristics, the same at all nodes of a mesh. Nobody outside can choose two
// requests with the same key, or a key that falls on a chosen node.
type Key uint64

// Verdict is what a rule says of a request. The zero value lets it pass, with nothing left.
type Verdict struct {
	Limited bool

	// Remaining is how many more requests are within the limit now, as far as this node
	// knows; at least 0.
	Remaining int

	// Reset is how long it takes until the period ends: with nothing remaining, until one
	// more request is within the limit, and of a request that is limited, until it may
	// come again. Never 0 if Limited.
	Reset time.Duration

	// Began says that it is this request with which the key came to be limited.
	Began bool
}
