//go:build linux

package faults

import "time"

// Figures of package node/ticket, on which this one does not lean: what it is to find
// out must not follow from the code that it judges. A test sees that they are those.
const (
	guard     = 400 * time.Millisecond // how far clocks may be apart, and a place rests after a session
	loanValid = 3 * time.Second        // how long tickets are lent to a site's counter
	takeUp    = time.Second            // how long a ticket waits for its visitor
)
