package transport

import "sync/atomic"

// Stats are counters since New, except for the gauges marked so. Bytes are
// those of UDP payloads: QUIC's own overhead is in, IP and UDP headers are
// not.
type Stats struct {
	BytesIn, BytesOut uint64

	Links int // gauge: connections to peers

	RefusedHandshakes uint64 // no certificate of the cluster, another ALPN, or cut off half-way
	RefusedPeers      uint64 // good certificate, but an incarnation or claim that it may not use
	MalformedFrames   uint64 // streams and packets that made no sense
	HandlerPanics     uint64

	CallsOut, CallsIn       uint64
	MessagesOut, MessagesIn uint64
	MessagesReplaced        uint64 // a newer message took their place while they waited
	MessagesDropped         uint64 // queue full, or nobody there
	QueuedMessages          int    // gauge
	QueuedBytes             int    // gauge

	GossipDropped uint64 // serf packets dropped because a connection could not keep up
	GossipQueue   int    // gauge: membership news that serf has still to tell
}

// counters are the parts of Stats that only grow.
type counters struct {
	traffic

	refusedHandshakes, refusedPeers, malformed, panics atomic.Uint64
	callsOut, callsIn, messagesOut, messagesIn         atomic.Uint64
	messagesReplaced, messagesDropped, gossipDropped   atomic.Uint64
}

// Stats returns the counters and gauges of the mesh.
func (m *Mesh) Stats() Stats {
	c := &m.count
	s := Stats{
		BytesIn:           c.in.Load(),
		BytesOut:          c.out.Load(),
		Links:             m.links.len(),
		RefusedHandshakes: c.refusedHandshakes.Load(),
		RefusedPeers:      c.refusedPeers.Load(),
		MalformedFrames:   c.malformed.Load(),
		HandlerPanics:     c.panics.Load(),
		CallsOut:          c.callsOut.Load(),
		CallsIn:           c.callsIn.Load(),
		MessagesOut:       c.messagesOut.Load(),
		MessagesIn:        c.messagesIn.Load(),
		MessagesReplaced:  c.messagesReplaced.Load(),
		MessagesDropped:   c.messagesDropped.Load(),
		GossipDropped:     c.gossipDropped.Load(),
	}
	s.QueuedMessages, s.QueuedBytes = m.post.depth()
	s.GossipQueue = m.gossip.queueDepth()
	return s
}
