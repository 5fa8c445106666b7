package traffic

import "math"

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

// predictWire returns what one node of a mesh sends by the model.
func predictWire(s shape) wire {
	nodes := s.Sites * s.Nodes
	if s.Rooms == 0 {
		return wire{UDP: membership(nodes)}
	}
	all := predict(s).Mean.all()
	return wire{Payload: all, UDP: onWire(nodes, all)}
}
