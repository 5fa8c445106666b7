package transport

import (
	"encoding/binary"
	"time"

	"github.com/hashicorp/memberlist"
)

// Memberlist asks one member a second whether it lives, over the connection that has its own pings. While these are
// answered, it would be told what is known, at the price of five wakes in two processes, and to wake is most of what
// nodes do that nobody asks. So its question is answered here. Once a ping of the connection is unanswered,
// memberlist's go out and find out for themselves.

// answered answers b, a packet of memberlist to a start of a peer, in the peer's place, and reports whether it
// has. Only a question by itself is: what has news with it goes to the peer.
func (g *gossip) answered(b []byte, boot uint64, l *link) bool {
	if l.hello.boot != boot || !l.answers() {
		return false
	}
	number, ok := probeNumber(b)
	return ok && g.deliver(l, appendProbeAnswer(nil, number))
}

// answers reports whether the peer has answered the last ping, and that was due since.
func (l *link) answers() bool {
	now, t := l.m.now(), l.m.cfg.Timing
	return !l.dead() && l.silentFor() == 0 && now-time.Duration(l.lastHeard.Load()) <= t.PingInterval+pingRetry
}

// deliver gives memberlist a packet, as from a peer, and reports whether there was room for it.
func (g *gossip) deliver(l *link, b []byte) bool {
	select {
	case g.packets <- &memberlist.Packet{Buf: b, From: netUDPAddr(l.addr), Timestamp: time.Now()}:
		return true
	default:
		g.m.count.gossipDropped.Add(1)
		return false
	}
}

// probeNumber returns the number of a question of memberlist that is all of a packet.
func probeNumber(b []byte) (number uint32, ok bool) {
	if len(b) == 0 || b[0] != mlPing {
		return 0, false
	}
	err := wholeMap(b[1:], func(key string, value []byte) error {
		if key != "SeqNo" {
			return nil
		}
		n, _, err := mpUint(value)
		number, ok = uint32(n), err == nil && n == uint64(uint32(n))
		return err
	})
	return number, ok && err == nil
}

// appendProbeAnswer appends what a member answers to the question of that number: a map of one field.
func appendProbeAnswer(dst []byte, number uint32) []byte {
	const field = "SeqNo"
	dst = append(append(dst, mlAck, 0x81, 0xa0|byte(len(field))), field...)
	return binary.BigEndian.AppendUint32(append(dst, 0xce), number)
}
