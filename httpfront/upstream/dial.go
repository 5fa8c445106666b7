package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/ropeline/ropeline/httpfront/conn/socket"
)

// DialError says that no connection to an origin could be opened, so that
// nothing of a request has been sent.
type DialError struct {
	Origin Origin
	Phase  string // "connect" or "TLS handshake"
	Err    error
}

func (e *DialError) Error() string { return fmt.Sprintf("%s to %s: %v", e.Phase, e.Origin, e.Err) }
func (e *DialError) Unwrap() error { return e.Err }

// Timeout reports whether the origin took too long.
func (e *DialError) Timeout() bool {
	t, ok := errors.AsType[net.Error](e.Err)
	return ok && t.Timeout() || errors.Is(e.Err, context.DeadlineExceeded)
}

// dial opens a connection to p's origin.
func (g *Group) dial(p *pool) (net.Conn, error) {
	conn, err := g.connect(context.Background(), p.origin.addr)
	if err != nil {
		return nil, p.notConnected(err)
	}
	conn = socket.New(conn)
	if p.tls == nil {
		return conn, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.cfg.Timeouts.Handshake)
	defer cancel()
	t := tls.Client(conn, p.tls)
	if err := t.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, &DialError{p.origin, "TLS handshake", err}
	}
	return t, nil
}

// connect opens a TCP connection. Each address that a name resolves to is looked
// at when it is about to be dialled, so that what is dialled is what was looked
// at, whatever the name says a moment later.
func (g *Group) connect(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Control: g.control, Resolver: g.resolver}
	return g.names.dial(ctx, &d, addr, g.cfg.Timeouts.Connect)
}

func (g *Group) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	return checkAddress(ap.Addr(), g.cfg.AllowAddresses)
}

// reap closes idle connections that are too old, until ctx ends.
func (g *Group) reap(ctx context.Context) {
	idle := g.cfg.Timeouts.Idle
	tick := time.Tick(idle)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick:
			for _, p := range g.pools {
				p.closeIdle(now.Add(-idle))
			}
		}
	}
}
