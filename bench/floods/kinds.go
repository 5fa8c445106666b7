//go:build linux

package floods

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/ropeline/ropeline/bench/measurement"
)

// kind is one kind of load. It either opens connections or sends requests.
type kind struct {
	name  string
	what  string
	to    string // the setting of the listener that it comes to; empty: listen
	state nodeState

	open   func(most int) int                           // how many are opened where visitors may have so many
	occupy func(ctx context.Context, c net.Conn, i int) // what one does until it ends

	requests int                // how many have to be answered until the flood is at its bound
	head     func(i int) []byte // a request

	items []item // what is held for each connection or request; of those of which there is one, once
}

// nodeState is what the node is started with.
type nodeState struct {
	tokens bool   // operators need one
	open   bool   // strangers are let in; otherwise all places are taken
	proxy  bool   // the visitor comes by way of a proxy that asks at verdict-listen; visitors of the node itself speak TLS
	config string // more lines
}

func kinds() []kind {
	all := func(most int) int { return most - spare }
	exactly := func(n int) func(int) int { return func(int) int { return n } }
	proxied := nodeState{config: "trusted-proxies: 127.0.0.0/8\n"}
	keyed := nodeState{config: `rate-limits: [{name: keys, expression: "true", characteristics: ['http.request.headers["x-api-key"]'], period: 1h, requests-per-period: 1000000000}]` + "\n"}
	tokens := nodeState{tokens: true}
	secure := nodeState{proxy: true, config: "trusted-proxies: 127.0.0.1/32\n"}         // floods come from other addresses
	part := func(n int) func(int) int { return func(most int) int { return most / n } } // which is within the bound also where files are short
	return []kind{
		{name: "bodies", what: "bodies that trickle in, of visitors who have to wait", open: all, occupy: trickle, items: []item{bodyConn}},
		{name: "uploads", what: "bodies that trickle in, of visitors who are let in", state: nodeState{open: true}, open: all, occupy: trickle, items: []item{uploadConn, waitingConn}},
		{name: "operator-bodies", what: "bodies of 7 MB for operators", to: "admin", state: tokens, open: exactly(adminConns), occupy: sendLong, items: []item{operatorConn}},
		{name: "heads", what: "unfinished heads of 16 KB", open: all, occupy: unfinished(headSize), items: []item{headConn}},
		{name: "operator-heads", what: "unfinished heads of 16 KB for operators", to: "admin", state: tokens, open: exactly(adminConns), occupy: unfinished(headSize), items: []item{operatorConn}},
		{name: "verdict-heads", what: "unfinished heads of 126 KB at verdict-listen", to: "verdict-listen", state: secure, open: exactly(strangers), occupy: unfinished(126_000), items: []item{verdictConn}},
		{name: "redirect-heads", what: "unfinished heads of 16 KB at redirect-listen", to: "redirect-listen", state: secure, open: part(3), occupy: unfinished(headSize), items: []item{redirectConn}},
		{name: "handshakes", what: "TLS handshakes that are not completed", state: secure, open: part(8), occupy: only(longHello()), items: []item{handshake}},
		{name: "connections", what: "connections that have asked once", open: all, occupy: only(newcomer(0)), items: []item{idleConn, inLine}},
		{name: "unread", what: "requests of visitors in line who read no answer", open: all, occupy: deaf, items: []item{unreadConn, inLine, fullSpeed}},
		{name: "operator-connections", what: "connections of operators that have asked nothing", to: "admin", state: tokens, open: exactly(adminConns), occupy: only(nil), items: []item{operatorConn}},
		{name: "streams", what: "streams of the dashboard of a node without tokens, half of which do not read", to: "admin", open: exactly(streams), occupy: follow, items: []item{streamConn}},
		{name: "new-visitors", what: "requests without a cookie", requests: newInLine, head: newcomer, items: []item{inLine, fullSpeed}},
		{name: "addresses", what: "requests of ever new addresses, IPv4 and IPv6 /64, by a trusted proxy", state: proxied, requests: 1_000_000, head: fromAnywhere, items: []item{inLine, addressSlot, fullSpeed}},
		{name: "keys", what: "requests with ever new keys of a rate limit", state: keyed, requests: 2_000_000, head: keyedNewcomer, items: []item{inLine, limitTable, fullSpeed}},
	}
}

func kindOf(name string) (kind, bool) {
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return all[i], true
}

func (k kind) row() string { return measurement.Row("load", k.name, "what", k.what) }

// budget is what a node may hold for so many of a kind.
func (k kind) budget(n int) (total int64) {
	for _, i := range k.items {
		total += i.all(n)
	}
	return total
}

// newcomer is a request of a browser without a cookie.
func newcomer(int) []byte { return headWith("") }

// fromAnywhere is a request by way of a trusted proxy, of an address that has not come before: by turns of IPv4, and of IPv6 networks.
func fromAnywhere(i int) []byte {
	n := scattered(i)
	if i%2 == 0 {
		return headWith(fmt.Sprintf("X-Forwarded-For: %d.%d.%d.%d\r\n", byte(n>>24), byte(n>>16), byte(n>>8), byte(n)))
	}
	return headWith(fmt.Sprintf("X-Forwarded-For: 2a00:%x:%x:1::1\r\n", uint16(n>>16), uint16(n)))
}

// keyedNewcomer is a request with a key that has not come before.
func keyedNewcomer(i int) []byte { return headWith(fmt.Sprintf("X-Api-Key: %08x\r\n", scattered(i))) }

// scattered is another number for each of 2^32, which neighbours are not near to.
func scattered(i int) uint32 { return uint32(i) * 2654435761 }

// headWith is a request of a browser with more fields.
func headWith(fields string) []byte { return headFor("/", fields) }

// headFor is headWith for a path.
func headFor(path, fields string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: flood\r\nAccept: text/html\r\n" + fields + "\r\n")
}
