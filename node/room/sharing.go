package room

import "fmt"

// Sharing says how many addresses one pass of somebody who is on the site may be used
// from, and what becomes of requests from more. The zero value ignores it.
type Sharing struct {
	Action SharedAction
	// Addresses is how many may be in use within a minute, 1 to MaxSharedAddresses; a
	// /64 of IPv6 is one. It has no meaning where sharing is ignored.
	Addresses int
}

// MaxSharedAddresses is the highest Addresses of Sharing: more are not remembered.
const MaxSharedAddresses = 6

// SharedAction is what becomes of a request with a pass that too many addresses use.
type SharedAction string

// Values of SharedAction.
const (
	SharedIgnore SharedAction = "ignore" // nobody looks; the empty SharedAction is the same
	SharedLog    SharedAction = "log"    // it is counted, and told in the log
	SharedQueue  SharedAction = "queue"  // the same, and its sender is somebody new
)

// Looks reports whether addresses are counted.
func (s *Sharing) Looks() bool { return s.Action != "" && s.Action != SharedIgnore }

// Queues reports whether who uses a pass beyond its addresses is new.
func (s *Sharing) Queues() bool { return s.Action == SharedQueue }

func (c *checks) sharing(s *Sharing) {
	if s.Looks() && s.Addresses == 0 {
		c.add("addresses-per-pass", "0", fmt.Sprintf("a whole number from 1 to %d", MaxSharedAddresses))
	}
}
