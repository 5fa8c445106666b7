package room

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
