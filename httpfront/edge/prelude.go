package edge

import (
	"bufio"
	"container/list"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/ropeline/ropeline/httpfront/http1"
)

// The prelude is what a connection may begin with before its first request: a
// PROXY header and a TLS handshake. Each takes as long as the client likes, so a
// connection has a goroutine of its own for it, and is served when it is
// over. Whoever floods us with beginnings takes places only from other beginnings,
// and of these from the oldest: an honest client is through in a moment.

// ACMEProtocol is what a certificate authority negotiates to see a certificate
// that proves who runs this host. RFC 8737, section 3: nothing is said then.
const ACMEProtocol = "acme-tls/1"

// prepare reads the prelude of e in a goroutine of its own, and hands e out.
func (l *Listener) prepare(e *Conn, peer netip.Addr, proxied bool) {
	place := l.beginPrelude(e)
	l.open.Go(func() { // beside e itself, which may be closed before its place is free
		ready := l.prelude(e, peer, proxied)
		l.endPrelude(place)
		if ready {
			l.handOut(e)
		}
	})
}

// beginPrelude counts e among those that are being prepared. If they are too
// many, the oldest is cut off.
func (l *Listener) beginPrelude(e *Conn) *list.Element {
	l.mu.Lock()
	var oldest *Conn
	if l.preparing.Len() >= l.cfg.Limits.Handshakes {
		oldest = l.preparing.Remove(l.preparing.Front()).(*Conn)
	}
	place := l.preparing.PushBack(e)
	l.mu.Unlock()
	if oldest != nil {
		oldest.raw.Close()
		l.warnings.preparing.Do(func() {
			l.cfg.Log.Warn("more connections are begun than completed; the oldest are cut off", "limit", l.cfg.Limits.Handshakes)
		})
	}
	select {
	case <-l.closed: // perhaps before e was in the list
		e.raw.Close()
	default:
	}
	return place
}

func (l *Listener) endPrelude(place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.preparing.Remove(place) // does nothing for who was cut off
}

// prelude makes e ready for a request, and reports whether it is; if not, it has been closed.
func (l *Listener) prelude(e *Conn, peer netip.Addr, proxied bool) (ready bool) {
	defer func() {
		// A panic here would end the process.
		if p := recover(); p != nil {
			l.cfg.Panicked(p)
			e.Close()
			ready = false
		}
	}()
	e.raw.SetDeadline(time.Now().Add(l.cfg.Head))
	if proxied && !l.readProxyHeader(e, peer) {
		return false
	}
	if l.cfg.TLS != nil {
		t := secure(e.Conn, l.cfg.TLS)
		if err := t.Handshake(); err != nil {
			l.handshakeFailed(e, err)
			return false
		}
		if t.ConnectionState().NegotiatedProtocol == ACMEProtocol {
			e.Close()
			return false
		}
		e.Conn = t.Conn
	}
	e.raw.SetDeadline(time.Time{})
	return true
}

// handshakeFailed closes e. Who speaks plain HTTP where TLS is spoken is told so.
func (l *Listener) handshakeFailed(e *Conn, err error) {
	if r, ok := errors.AsType[tls.RecordHeaderError](err); ok && r.Conn != nil && isPlainHTTP(r.RecordHeader) {
		no := http1.Refusal{Code: http.StatusBadRequest, Reason: "this port speaks TLS: the address has to begin with https://"}
		e.linger.Store(true)
		e.Write(l.cfg.Refuse(no))
	}
	e.Close()
}

// isPlainHTTP reports whether a client that was to begin with TLS began with a
// request line.
func isPlainHTTP(first [5]byte) bool {
	switch string(first[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO":
		return true
	}
	return false
}

// readProxyHeader reads the PROXY header that e has to begin with, and counts e
// for the visitor it names. It reports whether e goes on.
func (l *Listener) readProxyHeader(e *Conn, peer netip.Addr) bool {
	br := bufio.NewReaderSize(e.raw, proxyHeaderMin)
	if _, err := br.Peek(1); err != nil {
		e.Close() // a proxy that looks whether we are there says nothing
		return false
	}
	h, err := readProxyHeader(br)
	if err != nil {
		l.warnings.header.Do(func() {
			l.cfg.Log.Warn("a connection from a peer of proxy-protocol does not begin with a PROXY header, and is closed", "peer", peer, "error", err)
		})
		e.Close()
		return false
	}
	c := &proxiedConn{Conn: e.raw, remote: h.visitor}
	if n := br.Buffered(); n > 0 {
		early, _ := br.Peek(n)
		c.early = append([]byte(nil), early...)
	}
	e.Conn, e.secure = c, h.tls
	if !h.visitor.IsValid() {
		return true // the proxy's own
	}
	if no := l.admit(e, h.visitor.Addr()); no.Code != 0 {
		e.raw.SetDeadline(time.Time{})
		l.turnAway(e, no)
		return false
	}
	return true
}

// proxiedConn is a connection behind a PROXY header.
type proxiedConn struct {
	net.Conn
	early  []byte         // read with the header, and not of it
	remote netip.AddrPort // of the visitor; invalid for the proxy's own
}

// Read reads what came behind the header.
func (c *proxiedConn) Read(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		if c.early = c.early[n:]; len(c.early) == 0 {
			c.early = nil
		}
		return n, nil
	}
	return c.Conn.Read(p)
}

// RemoteAddr returns the visitor's address.
func (c *proxiedConn) RemoteAddr() net.Addr {
	if !c.remote.IsValid() {
		return c.Conn.RemoteAddr()
	}
	return net.TCPAddrFromAddrPort(c.remote)
}

// CloseWrite says that nothing more will be sent.
func (c *proxiedConn) CloseWrite() error {
	if c, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}
