// Package udp is a network between nodes of one machine that delays, loses,
// doubles and reorders packets, and can be cut between any two of them in either
// direction.
//
// Every node gets an address of its own at the proxy, which it tells the others
// (--advertise). What node A sends to the address of node B, the proxy sends on
// to B from the address of A: so both sides see each other only as they
// advertise themselves, and a reply takes the same way back. Which link a packet
// is on follows from these two addresses alone, and no packet is looked into.
//
// A [Proxy] may be used from many goroutines.
package udp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Link is how packets from one node to another fare. The zero value delivers all
// of them at once. Chances are from 0 to 1, each packet's own.
type Link struct {
	Cut       bool          // nothing comes through
	Room      int           // bytes of the largest packet that comes through, without the heads of IP and UDP; 0: any
	Delay     time.Duration // on the way
	Jitter    time.Duration // up to so much more, evenly
	Loss      float64       // chance of being lost
	Duplicate float64       // chance of coming twice
	Reorder   float64       // chance of coming Late, behind packets sent after it
	Late      time.Duration
}

// Bent is a link that loses a share of all packets, and delays, doubles and reorders some.
func Bent(loss float64) Link {
	return Link{
		Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: loss,
		Duplicate: 0.05, Reorder: 0.05, Late: 100 * time.Millisecond,
	}
}

// Stats counts packets since the start: those that came, once it is known what becomes of them, and those that
// were sent on.
type Stats struct {
	Judged, Sent uint64
}

// Proxy is the network.
type Proxy struct {
	wg   sync.WaitGroup
	link func(from, to string) Link

	mu     sync.Mutex // guards the following
	nodes  map[string]*endpoint
	byReal map[netip.AddrPort]*endpoint
	rng    *rand.Rand
	closed bool

	judged, sent atomic.Uint64
}

// endpoint stands for one node.
type endpoint struct {
	name string
	real netip.AddrPort // where the node listens
	sock *net.UDPConn   // what others know it by
}

// maxPacket is the largest UDP payload.
const maxPacket = 65507

// NewProxy returns a network without nodes. link says how a packet from one node to another fares; it is called by
// several goroutines. Chances follow from seed.
func NewProxy(seed uint64, link func(from, to string) Link) *Proxy {
	return &Proxy{
		link:   link,
		nodes:  map[string]*endpoint{},
		byReal: map[netip.AddrPort]*endpoint{},
		rng:    rand.New(rand.NewPCG(seed, 0)),
	}
}

// Add gives the node that listens at real an address on loopback, which it has
// for as long as the proxy lives, and returns that.
func (p *Proxy) Add(name, real string) (string, error) {
	at, err := netip.ParseAddrPort(real)
	if err != nil {
		return "", fmt.Errorf("proxy of node %s: %w", name, err)
	}
	sock, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return "", fmt.Errorf("proxy of node %s: %w", name, err)
	}
	// The kernel's defaults hold a few milliseconds of a busy mesh; what it
	// drops would be a loss that nobody asked for.
	_ = sock.SetReadBuffer(4 << 20)
	_ = sock.SetWriteBuffer(4 << 20)
	e := &endpoint{name: name, real: at, sock: sock}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.nodes[name] != nil || p.byReal[at] != nil {
		return "", errors.Join(fmt.Errorf("proxy of node %s: there is one, or the proxy is closed", name), sock.Close())
	}
	p.nodes[name], p.byReal[at] = e, e
	p.wg.Go(func() { p.serve(e) })
	return sock.LocalAddr().String(), nil
}

// Stats returns what became of packets so far.
func (p *Proxy) Stats() Stats {
	return Stats{p.judged.Load(), p.sent.Load()}
}

// Close ends the network; packets under way are lost.
func (p *Proxy) Close() error {
	p.mu.Lock()
	var errs []error
	for _, e := range p.nodes {
		errs = append(errs, e.sock.Close())
	}
	p.closed = true
	p.mu.Unlock()
	p.wg.Wait()
	return errors.Join(errs...)
}

// serve takes what is sent to the address of one node.
func (p *Proxy) serve(to *endpoint) {
	buf := make([]byte, maxPacket)
	for {
		n, src, err := to.sock.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the node that was written to does not listen; this read is none of its business
		}
		src = netip.AddrPortFrom(src.Addr().Unmap(), src.Port())
		p.pass(src, to, buf[:n])
	}
}

// pass sends one packet on, or not, or later.
func (p *Proxy) pass(src netip.AddrPort, to *endpoint, packet []byte) {
	defer p.judged.Add(1)
	p.mu.Lock()
	from := p.byReal[src]
	p.mu.Unlock()
	if from == nil {
		return
	}
	l := p.link(from.name, to.name)
	if l == (Link{}) { // most of them
		p.deliver(from, to, packet)
		return
	}
	p.mu.Lock()
	lost := l.Loss > 0 && p.rng.Float64() < l.Loss
	double := l.Duplicate > 0 && p.rng.Float64() < l.Duplicate
	late := l.Reorder > 0 && p.rng.Float64() < l.Reorder
	delays := [2]time.Duration{l.delay(p.rng), l.delay(p.rng)}
	p.mu.Unlock()
	if l.Cut || lost || l.Room > 0 && len(packet) > l.Room {
		return
	}
	if late {
		delays[0] += l.Late
	}
	p.after(delays[0], from, to, packet)
	if double {
		p.after(delays[1], from, to, packet)
	}
}

func (l Link) delay(rng *rand.Rand) time.Duration {
	d := l.Delay
	if l.Jitter > 0 {
		d += time.Duration(rng.Int64N(int64(l.Jitter)))
	}
	return d
}

func (p *Proxy) after(d time.Duration, from, to *endpoint, packet []byte) {
	if d <= 0 {
		p.deliver(from, to, packet)
		return
	}
	own := append([]byte(nil), packet...)
	time.AfterFunc(d, func() { p.deliver(from, to, own) }) // of two at the same time either may be first
}

// deliver sends a packet to a node from the address of another. That the node
// is not there is nothing to report.
func (p *Proxy) deliver(from, to *endpoint, packet []byte) {
	p.sent.Add(1) // first, so that who has received a packet finds it counted
	if _, err := from.sock.WriteToUDPAddrPort(packet, to.real); err != nil {
		p.sent.Add(^uint64(0))
	}
}
