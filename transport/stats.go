package transport

// Stats are counters since New, except for the gauges marked so. Bytes are
// those of UDP payloads: QUIC's own overhead is in, IP and UDP headers are
// not.
type Stats struct {
	BytesIn, BytesOut     uint64
	PacketsIn, PacketsOut uint64

	Links int // gauge: connections to peers

	RefusedHandshakes uint64 // no certificate of the cluster, another ALPN, or cut off half-way
	RefusedPeers      uint64 // good certificate, but an id, site or incarnation that it may not use
	MalformedFrames   uint64 // streams and packets that made no sense
	HandlerPanics     uint64

	CallsOut, CallsIn       uint64
	MessagesOut, MessagesIn uint64
	MessagesReplaced        uint64 // a newer message took their place while they waited
	MessagesDropped         uint64 // queue full, or nobody there
	QueuedMessages          int    // gauge
	QueuedBytes             int    // gauge

	GossipDropped uint64 // serf packets dropped because a connection could not keep up
	EventQueue    int    // gauge: serf's queue of membership news
}
