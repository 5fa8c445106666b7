//go:build linux

package floods

// Bounds of a node, as its settings have them by default, and those that no setting changes.
const (
	defaultConns = 32768    // max-connections
	uploads      = 1024 / 2 // half of max-origin-requests
	handshakes   = 4096     // max-handshakes
	adminConns   = 1024     // connections of operators
	streams      = 64       // of the dashboard
	strangers    = 512      // at verdict-listen
	newInLine    = 600_000  // of max-new-visitors, a minute; who does not come again is in line for less
	addressSlots = 1 << 16
)

// item is a line of the table of docs/operating.md: what is held for one of something, and how many there may be.
type item struct {
	name string
	most int   // with the default settings
	each int64 // bytes resident, garbage included
}

// all is what is held for n.
func (i item) all(n int) int64 { return i.each * int64(min(n, i.most)) }

// The budget. A test holds it to the table.
var (
	idleConn     = item{"a connection of a visitor without a request", defaultConns, 40 << 10}
	headConn     = item{"the same with an unfinished head", defaultConns, 48 << 10}
	bodyConn     = item{"the same with a body that nobody wants", defaultConns, 48 << 10}
	unreadConn   = item{"the same with an answer that is not read", defaultConns, 72 << 10}
	waitingConn  = item{"the same with a request that waits for a place at the site", defaultConns, 80 << 10}
	uploadConn   = item{"a body on its way to the site", uploads, 128 << 10}
	handshake    = item{"a TLS handshake of a visitor that is not complete", handshakes, 128 << 10}
	operatorConn = item{"a connection of an operator", adminConns, 96 << 10}
	redirectConn = item{"a connection to `redirect-listen`", defaultConns, 48 << 10}
	verdictConn  = item{"a connection to `verdict-listen` of an address that is not in `trusted-proxies`", strangers, 448 << 10}
	streamConn   = item{"a stream of the dashboard", streams, 64 << 10}
	inLine       = item{"a visitor in line", newInLine, 256}
	addressSlot  = item{"an address that new visitors come from", addressSlots, 16}
	limitTable   = item{"the keys of rate limits", 1, 64 << 20} // limit-memory
	fullSpeed    = item{"requests as many as a core answers", 1, 64 << 20}
)
