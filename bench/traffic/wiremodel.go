package traffic

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// What goes over the wire besides payloads of messages. The first two are estimates from the
// sizes of packets; pings and probes are fitted to members alone; the rest follows from what
// memberlist is set to.
const (
	perMessage = 62.0  // head of a packet, its seal, the message's own head, and a share of an acknowledgement
	perByte    = 0.036 // of a message that fills many packets: the same for each of them

	perLink     = 72.0  // pings in both directions, every 2 s
	perProbe    = 240.0 // memberlist: one member a second is probed, and one probes this node
	perExchange = 170.0 // of one member in a full exchange, which both ends send whole
)

// mostLinks is how many connections a node holds at once.
const mostLinks = 512

// exchangeEvery returns the seconds between two full exchanges that a node begins: memberlist
// takes longer in meshes of more than 32 nodes.
func exchangeEvery(nodes float64) float64 {
	const from, most = 30, 32
	if nodes <= most {
		return from
	}
	return from * (math.Ceil(math.Log2(nodes)-math.Log2(most)) + 1)
}

// membership returns what a node sends so that all know who is there. Every node is probed in
// turn, and so has a link to every other, as far as its links go.
func membership(nodes int) float64 {
	n := float64(nodes)
	return min(n-1, mostLinks)*perLink + perProbe + 2*n*perExchange/exchangeEvery(n)
}

// onWire returns the UDP payload that goes with messages.
func onWire(nodes int, m volume) float64 {
	return m.Bytes*(1+perByte) + m.Messages*perMessage + membership(nodes)
}

// wires returns the meshes that are measured over real links; those without rooms have no
// nodes, and are members alone.
func wires(small bool) []shape {
	var all []shape
	add := func(sites, nodes, rooms int, visitors float64) {
		s := shape{Sites: sites, Nodes: nodes, Rooms: rooms, Policy: room.Escrow, Visitors: visitors, Before: 20 * time.Second, Span: 40 * time.Second}
		if visitors > 0 {
			s.Before += session // after which as many leave as come
		}
		all = append(all, s)
	}
	add(1, 3, 0, 0)
	add(1, 12, 0, 0)
	if small {
		return all
	}
	add(1, 24, 0, 0)
	add(1, 3, 100, 0)
	add(1, 12, 10, 1)
	add(3, 4, 10, 0)
	add(3, 4, 10, 1)
	add(12, 1, 10, 1./12)
	return all
}

// writeWires writes the table of real meshes.
func writeWires(w io.Writer, all []shape, measured []wire) {
	fmt.Fprint(w, "| sites × nodes | rooms | visitors of each room | messages/s | model | payload, B/s | model | off | UDP, B/s | model | off |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for i, s := range all {
		got, nodes := measured[i], s.Sites*s.Nodes
		if s.Rooms == 0 {
			fmt.Fprintf(w, "| %d members alone | | | | | | | | %.0f | %.0f | %s |\n", nodes, got.UDP, membership(nodes), off(membership(nodes), got.UDP))
			continue
		}
		is := predictWire(s)
		want, udp := is.Payload, is.UDP
		fmt.Fprintf(w, "| %d × %d | %d | %s | %.1f | %.1f | %.0f | %.0f | %s | %.0f | %.0f | %s |\n", s.Sites, s.Nodes, s.Rooms, s.load(),
			got.Payload.Messages, want.Messages, got.Payload.Bytes, want.Bytes, off(want.Bytes, got.Payload.Bytes), got.UDP, udp, off(udp, got.UDP))
	}
}

// predictWire returns what one node of a mesh sends by the model.
func predictWire(s shape) wire {
	nodes := s.Sites * s.Nodes
	if s.Rooms == 0 {
		return wire{UDP: membership(nodes)}
	}
	near, far := predict(s).Mean.sum()
	all := near.plus(far)
	return wire{Payload: all, UDP: onWire(nodes, all)}
}

// hundreds returns meshes that are too large to be run on one machine, members and all.
func hundreds() []shape {
	const sites = 300
	var all []shape
	for _, nodes := range []int{1, 10} {
		for _, s := range []shape{{Rooms: 10}, {Rooms: 10, Visitors: 1. / sites}, {Rooms: 100, Visitors: 1. / sites}} {
			s.Sites, s.Nodes, s.Policy = sites, nodes, room.Escrow
			all = append(all, s)
		}
	}
	all = append(all, shape{Sites: sites, Nodes: 1, Rooms: 100, Visitors: 1, Policy: room.Escrow}, shape{Sites: sites, Nodes: 3, Rooms: 10, Visitors: 1, Policy: room.Escrow})
	for i := range all {
		all[i].Before = 11 * time.Minute // so long that no more ticks come in than are forgotten
	}
	return all
}

// writeModel writes what the model says of meshes, over the wire.
func writeModel(w io.Writer, all []shape) {
	fmt.Fprint(w, "| sites × nodes | rooms | visitors of each room | each node, on average, KB/s | each relay | of that so that all know who is there |\n|---|---|---|---|---|---|\n")
	for _, s := range all {
		nodes := s.Sites * s.Nodes
		near, far := predict(s).Relay.sum()
		fmt.Fprintf(w, "| %d × %d | %d | %s | %.0f | %.0f | %.0f |\n", s.Sites, s.Nodes, s.Rooms, s.load(),
			predictWire(s).UDP/1000, onWire(nodes, near.plus(far))/1000, membership(nodes)/1000)
	}
}
