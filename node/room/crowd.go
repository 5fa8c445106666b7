package room

import "strconv"

// NewVisitors bounds how many visitors a node takes into the line of a room within a
// minute. It is about those who have no pass that counts, and would have to wait: whoever
// has one, and whoever finds a place free, is not among them. Each of the two is a bucket
// that holds as many as are allowed in a minute and fills up again over one. Zero is no
// limit.
type NewVisitors struct {
	PerAddress int // of one address, which is a /64 of IPv6; at most MaxNewVisitors
	All        int // of all addresses together; at most MaxNewVisitors
}

// MaxNewVisitors is the highest limit of NewVisitors, per minute.
const MaxNewVisitors = 1 << 20

func (c *checks) newVisitors(n *NewVisitors) {
	for _, l := range []struct {
		field string
		value int
	}{{"max-new-visitors-per-address", n.PerAddress}, {"max-new-visitors", n.All}} {
		if l.value < 0 || l.value > MaxNewVisitors {
			c.add(l.field, strconv.Itoa(l.value), "0 to 1048576 a minute; 0 is no limit")
		}
	}
}
