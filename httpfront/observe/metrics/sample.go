package metrics

import (
	"github.com/ropeline/ropeline/httpfront/certs"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/transport"
)

// Sample is what a node is at one moment, as its parts say. Numbers that only grow count from
// the start of the process. The zero value is a node that is not ready and knows nothing.
type Sample struct {
	Node         node.Status     // the nodes that are down as all that run know them
	Mesh         transport.Stats // zero: it is alone
	Disk         Disk
	Front        Front
	Limits       []LimitTally // rate limits that the front follows; those of Node count
	Origins      []upstream.Status
	Certificates []certs.Status // those shown to visitors

	shown // is set by bound
}

// shown is what of a sample has series where not all can.
type shown struct {
	rooms        []node.RoomStatus
	origins      []origin
	certificates []certs.Status
}

// origin is one of the servers behind the node.
type origin struct {
	room string // whose it is; "" for the rest
	upstream.OriginStatus
}

// Disk is where the data directory lies.
type Disk struct {
	FreeBytes, SizeBytes uint64 // of the file system, for this process
	StoreBytes           uint64 // that the store takes
}

// Front is what HTTP clients meet.
type Front struct {
	Connections      int // open
	ConnectionsMax   int // of these at one time
	RequestsInFlight int

	AccessLines, AccessDropped, AccessErrors uint64 // of the access log
	LogDropped                               uint64 // lines of the node's own log
}

// LimitTally is what a rate limit has done at this node.
type LimitTally struct {
	ID, Action string
	Requests   uint64
}

// bound leaves out what would be too many series, or two of the same name, of which
// Prometheus would take neither. It returns how many.
func (s *Sample) bound() int {
	var origins []origin
	for _, group := range s.Origins {
		for _, o := range group.Origins {
			origins = append(origins, origin{group.Name, o})
		}
	}
	s.rooms = firstOf(s.Node.Rooms, maxRooms, func(r *node.RoomStatus) [2]string { return [2]string{label(r.Zone), label(r.Name)} })
	s.origins = firstOf(origins, maxOthers, func(o *origin) [2]string { return [2]string{label(o.room), label(o.URL)} })
	s.certificates = firstOf(s.Certificates, maxOthers, func(c *certs.Status) [2]string { return [2]string{label(certificateName(c))} })
	return len(s.Node.Rooms) + len(origins) + len(s.Certificates) - len(s.rooms) - len(s.origins) - len(s.certificates)
}

// firstOf returns the first of each name, at most so many.
func firstOf[T any](all []T, most int, name func(*T) [2]string) []T {
	seen := make(map[[2]string]bool, min(len(all), most))
	var first []T
	for i := range all {
		if n := name(&all[i]); len(first) < most && !seen[n] {
			seen[n] = true
			first = append(first, all[i])
		}
	}
	return first
}

// certificateName is the first name in a certificate.
func certificateName(c *certs.Status) string {
	if len(c.Names) == 0 {
		return ""
	}
	return c.Names[0]
}
