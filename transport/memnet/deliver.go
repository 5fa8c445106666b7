package memnet

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/ropeline/ropeline/transport"
	"github.com/ropeline/ropeline/transport/internal/skew"
)

const (
	beatInterval = 500 * time.Millisecond
	// silence is how long a peer may be quiet before it counts as failed;
	// nearly what the real mesh takes on a LAN.
	silence = 5 * time.Second
)

// peer is what a mesh knows of another.
type peer struct {
	peer  transport.Peer // State is zero until it was heard
	heard time.Time
	gone  uint64 // boot+1 of the incarnation that said good-bye
	clock *skew.Filter
}

// beat is what nodes tell each other all the time: who they are, where the
// others are, and their clocks.
type beat struct {
	self   transport.Peer
	others []netip.AddrPort
	t1     int64         // of the sender; asks for an answer unless zero
	sent   time.Duration // the same on the sender's monotonic clock
	echo   struct {      // answers a beat
		t1, t2, t3 int64
		sent       time.Duration
	}
}

func (m *Mesh) ownBeat() beat {
	b := beat{self: transport.Peer{
		ID: m.cfg.ID, Name: m.cfg.Name, Site: m.cfg.Site, Boot: m.cfg.Boot, Addr: m.addr, State: transport.Alive,
	}}
	m.mu.Lock()
	defer m.mu.Unlock()
	b.self.Ready = m.ready
	for _, p := range m.peers {
		if p.peer.State == transport.Alive {
			b.others = append(b.others, p.peer.Addr)
		}
	}
	return b
}

// beat tells everybody that this node is there, tries again those that are
// missing, and gives up those that have been quiet for too long.
func (m *Mesh) beat() {
	b := m.ownBeat()
	b.t1, b.sent = m.cfg.Clock().UnixNano(), time.Since(m.began)
	m.broadcast(packet{kind: heartbeat, beat: b})
	var failed []transport.Event
	m.mu.Lock()
	for _, p := range m.peers {
		if p.peer.State == transport.Alive && time.Since(p.heard) > silence {
			p.peer.State = transport.Failed
			failed = append(failed, transport.Event{Type: transport.Fail, Peer: p.peer})
		}
	}
	m.mu.Unlock()
	for _, ev := range failed {
		m.tell(ev)
	}
}

// broadcast sends p to all peers and seeds.
func (m *Mesh) broadcast(p packet) {
	m.mu.Lock()
	to := map[netip.AddrPort]bool{}
	for s := range m.seeds {
		to[s] = true
	}
	for _, q := range m.peers {
		if q.peer.Addr.IsValid() {
			to[q.peer.Addr] = true
		}
	}
	delete(to, m.addr)
	m.mu.Unlock()
	addrs := make([]netip.AddrPort, 0, len(to))
	for a := range to {
		addrs = append(addrs, a)
	}
	// In a fixed order, so that a seed always gives the same draws.
	slices.SortFunc(addrs, netip.AddrPort.Compare)
	for _, a := range addrs {
		m.net.send(m, a, p)
	}
}

func (m *Mesh) deliver(p packet) {
	switch p.kind {
	case heartbeat:
		m.heartbeat(p)
	case goodbye:
		m.goodbye(p)
	case message:
		m.stats.messagesIn.Add(1)
		m.stats.bytesIn.Add(uint64(len(p.body)))
		if from, ok := m.known(p.from); ok && m.cfg.OnMessage != nil {
			m.guard(func() { m.cfg.OnMessage(from, p.method, slices.Clone(p.body)) })
		}
	case request:
		m.goRun(func() { m.serve(p) })
	case answer:
		m.mu.Lock()
		waiting := m.calls[p.call]
		delete(m.calls, p.call) // a second answer to the same call has nowhere to go
		m.mu.Unlock()
		if waiting != nil {
			m.stats.bytesIn.Add(uint64(len(p.body)))
			waiting <- p
		}
	}
}

// heartbeat takes news of and from a peer.
func (m *Mesh) heartbeat(p packet) {
	b, now := p.beat, time.Now()
	var ev transport.Event
	m.mu.Lock()
	q := m.peers[p.from]
	if q == nil {
		q = &peer{clock: new(skew.Filter)}
		m.peers[p.from] = q
	}
	if b.self.Boot < q.peer.Boot || q.gone == b.self.Boot+1 {
		m.mu.Unlock()
		return // from before its restart, or its end
	}
	q.heard = now
	old := q.peer
	q.peer = b.self
	if old.Boot != b.self.Boot {
		q.clock = new(skew.Filter) // another process, perhaps another machine
	}
	clock := q.clock
	switch {
	case old.State == 0 || old.State == transport.Left:
		ev.Type = transport.Join
	case old.State == transport.Failed || old.Boot != b.self.Boot:
		ev.Type = transport.Rejoin
	case old != q.peer:
		ev.Type = transport.Update
	}
	ev.Peer = q.peer
	for _, a := range b.others {
		m.seeds[a] = true
	}
	m.mu.Unlock()
	if e := b.echo; e.t1 != 0 {
		if s, ok := skew.New(e.t1, e.t2, e.t3, time.Since(m.began)-e.sent); ok {
			clock.Add(s)
		}
	}
	if b.t1 != 0 {
		reply := m.ownBeat()
		t := m.cfg.Clock().UnixNano()
		reply.echo.t1, reply.echo.t2, reply.echo.t3, reply.echo.sent = b.t1, t, t, b.sent
		m.net.send(m, p.fromAddr, packet{kind: heartbeat, beat: reply})
	}
	if ev.Type != 0 {
		m.tell(ev)
	}
}

func (m *Mesh) goodbye(p packet) {
	m.mu.Lock()
	q := m.peers[p.from]
	if q == nil || q.peer.Addr != p.fromAddr || q.peer.State == transport.Left {
		m.mu.Unlock()
		return
	}
	q.peer.State = transport.Left
	q.gone = q.peer.Boot + 1
	delete(m.seeds, p.fromAddr)
	ev := transport.Event{Type: transport.Leave, Peer: q.peer}
	m.mu.Unlock()
	m.tell(ev)
}

// serve answers a call.
func (m *Mesh) serve(p packet) {
	m.stats.callsIn.Add(1)
	m.stats.bytesIn.Add(uint64(len(p.body)))
	from, ok := m.known(p.from)
	if !ok {
		return
	}
	ctx, cancel := context.WithDeadline(m.runCtx, p.expiry)
	defer cancel()
	reply := packet{kind: answer, call: p.call}
	if m.cfg.OnCall == nil {
		reply.err = &transport.RemoteError{Code: transport.CodeNoHandler, Text: "no handler"}
	} else if !m.guard(func() { reply.body, reply.err = m.cfg.OnCall(ctx, from, p.method, slices.Clone(p.body)) }) {
		reply.body, reply.err = nil, &transport.RemoteError{Code: transport.CodePanic, Text: "handler panicked"}
	}
	if reply.err == nil && len(reply.body) > transport.MaxCall {
		reply.body, reply.err = nil, &transport.RemoteError{Code: transport.CodeTooLarge, Text: "answer too large"}
	}
	if reply.err != nil {
		// Only what would survive the wire.
		if remote, ok := errors.AsType[*transport.RemoteError](reply.err); ok {
			reply.err = &transport.RemoteError{Code: remote.Code, Text: remote.Text}
		} else {
			reply.err = &transport.RemoteError{Text: reply.err.Error()}
		}
		reply.body = nil
	}
	m.stats.bytesOut.Add(uint64(len(reply.body)))
	m.net.send(m, p.fromAddr, reply)
}

// known returns a peer that was heard at least once.
func (m *Mesh) known(id transport.PeerID) (transport.Peer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.peers[id]
	if p == nil {
		return transport.Peer{}, false
	}
	return p.peer, true
}

// tell reports a change. It is called by the loop only.
func (m *Mesh) tell(ev transport.Event) {
	if m.cfg.OnEvent != nil {
		m.guard(func() { m.cfg.OnEvent(ev) })
	}
}

// guard runs f and reports whether it ended without a panic.
func (m *Mesh) guard(f func()) (ok bool) {
	defer func() {
		if recover() != nil {
			m.stats.panics.Add(1)
		}
	}()
	f()
	return true
}
