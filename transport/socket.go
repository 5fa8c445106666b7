package transport

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/net/ipv4"
)

// wantedBuffer is what QUIC asks the kernel for, in bytes per direction.
const wantedBuffer = 7 << 20

// traffic counts what goes through the socket.
type traffic struct{ in, out atomic.Uint64 }

// bindSocket opens the UDP socket of cfg, or takes the one it is given.
func bindSocket(cfg Config, t *traffic) (net.PacketConn, error) {
	if cfg.PacketConn != nil {
		return &countedConn{PacketConn: cfg.PacketConn, t: t, reads: newReads(cfg.Logger)}, nil
	}
	addr, err := net.ResolveUDPAddr("udp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", cfg.Listen, err)
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", cfg.Listen, err)
	}
	return &countedUDP{UDPConn: conn, batch: ipv4.NewPacketConn(conn), t: t, reads: newReads(cfg.Logger)}, nil
}

// countedUDP is a UDP socket that counts. It keeps the methods by which QUIC
// recognises a real socket, so that batched reads and GSO stay on.
type countedUDP struct {
	*net.UDPConn
	batch interface {
		ReadBatch([]ipv4.Message, int) (int, error)
	}
	t     *traffic
	reads *reads
}

func (c *countedUDP) ReadBatch(ms []ipv4.Message, flags int) (n int, err error) {
	err = c.reads.patiently(func() error {
		n, err = c.batch.ReadBatch(ms, flags)
		return err
	})
	for _, m := range ms[:max(n, 0)] {
		c.t.in.Add(uint64(m.N))
	}
	return n, err
}

func (c *countedUDP) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (int, int, error) {
	n, oobn, err := c.UDPConn.WriteMsgUDP(b, oob, addr)
	c.t.out.Add(uint64(max(n, 0)))
	return n, oobn, err
}

// countedConn is any other packet connection that counts.
type countedConn struct {
	net.PacketConn
	t     *traffic
	reads *reads
}

func (c *countedConn) ReadFrom(b []byte) (n int, addr net.Addr, err error) {
	err = c.reads.patiently(func() error {
		n, addr, err = c.PacketConn.ReadFrom(b)
		return err
	})
	c.t.in.Add(uint64(max(n, 0)))
	return n, addr, err
}

func (c *countedConn) WriteTo(b []byte, addr net.Addr) (int, error) {
	n, err := c.PacketConn.WriteTo(b, addr)
	c.t.out.Add(uint64(max(n, 0)))
	return n, err
}

// SetReadBuffer and SetWriteBuffer satisfy QUIC, which warns without them.
func (c *countedConn) SetReadBuffer(int) error  { return nil }
func (c *countedConn) SetWriteBuffer(int) error { return nil }

// bufferAdvice returns the sysctl that would give conn the buffers that QUIC
// asks for, or "" where they are large enough or nothing is known. A process
// that may override the limits has done so by the time QUIC listens.
func bufferAdvice(conn net.PacketConn) string {
	udp, ok := conn.(*countedUDP)
	if !ok {
		return ""
	}
	read, write, ok := socketBuffers(udp.UDPConn)
	if !ok {
		return ""
	}
	return bufferRemedy(read, write)
}

// quicWarning is the variable that keeps QUIC from printing, through package
// log, what bufferAdvice says in the mesh's own log and with a remedy.
const quicWarning = "QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING"

// quietQUIC switches QUIC's own warning about conn off if bufferAdvice can take
// its place. QUIC offers nothing but this variable, which counts for the whole
// process; whoever has set it is left with their choice.
func quietQUIC(conn net.PacketConn) {
	udp, ok := conn.(*countedUDP)
	if !ok {
		return
	}
	if _, _, known := socketBuffers(udp.UDPConn); !known {
		return
	}
	if _, set := os.LookupEnv(quicWarning); !set {
		_ = os.Setenv(quicWarning, "true") // at worst it is said twice
	}
}

func bufferRemedy(read, write int) string {
	var keys []string
	if read < wantedBuffer {
		keys = append(keys, "net.core.rmem_max=7500000")
	}
	if write < wantedBuffer {
		keys = append(keys, "net.core.wmem_max=7500000")
	}
	if len(keys) == 0 {
		return ""
	}
	return "sysctl -w " + strings.Join(keys, " ")
}

// localAddrPort returns where conn is bound.
func localAddrPort(conn interface{ LocalAddr() net.Addr }) (netip.AddrPort, error) {
	return addrPortOf(conn.LocalAddr())
}

// addrPortOf turns a net.Addr of either a socket or a simulation into an
// address that can be compared.
func addrPortOf(a net.Addr) (netip.AddrPort, error) {
	if u, ok := a.(*net.UDPAddr); ok {
		ap := u.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), nil
	}
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q: %w", a, err)
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), nil
}
