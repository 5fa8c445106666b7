package transport

import (
	"net"
	"testing"
	"time"
)

// TestProbesAreAnsweredByTheLink: memberlist's question about a peer is answered without a packet as long as the peer
// answers pings, and not for a start of it that is over, nor for longer.
func TestProbesAreAnsweredByTheLink(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(lanDelay)
		ns := newCluster(t, w).nodes(2)
		time.Sleep(10 * time.Second)
		ask := func(boot uint64) error {
			_, err := ns[0].mesh.gossip.serf.Memberlist().Ping(memberName(ns[1].id, boot), net.UDPAddrFromAddrPort(ns[1].addr))
			return err
		}
		began := time.Now()
		if err := ask(1); err != nil || time.Since(began) > 0 {
			t.Errorf("a peer that answers pings: %v after %v, want an answer at once", err, time.Since(began))
		}
		if err := ask(0); err == nil {
			t.Error("an earlier start of the peer is answered for")
		}
		w.isolate(ns[1])
		if err := ask(1); err != nil {
			t.Errorf("before a ping is unanswered: %v", err)
		}
		time.Sleep(LAN().Timing.PingInterval + pingRetry)
		if err := ask(1); err == nil {
			t.Error("a peer that is cut off is answered for")
		}
	})
}

// TestProbeNumber: a question and its answer, and what is none.
func TestProbeNumber(t *testing.T) {
	ping := func(field string, number ...byte) []byte {
		return append(append([]byte{mlPing, 0x81, 0xa0 | byte(len(field))}, field...), number...)
	}
	for what, c := range map[string]struct {
		packet []byte
		want   uint32
		ok     bool
	}{
		"small":            {ping("SeqNo", 7), 7, true},
		"large":            {ping("SeqNo", 0xce, 0xff, 0xff, 0xff, 0xff), 1<<32 - 1, true},
		"too large":        {packet: ping("SeqNo", 0xcf, 1, 0, 0, 0, 0, 0, 0, 0)},
		"without a number": {packet: ping("Node", 7)},
		"with more":        {packet: append(ping("SeqNo", 7), 0)},
		"an answer":        {packet: appendProbeAnswer(nil, 7)},
		"a bundle":         {packet: []byte{mlCompound, 0}},
		"nothing":          {},
	} {
		if got, ok := probeNumber(c.packet); ok != c.ok || ok && got != c.want {
			t.Errorf("%s: got %d, %v, want %d, %v", what, got, ok, c.want, c.ok)
		}
	}
	if err := new(gossipCheck).packet(appendProbeAnswer(nil, 1<<32-1)); err != nil {
		t.Errorf("an answer is taken for nonsense: %v", err)
	}
}
