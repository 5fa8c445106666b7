package transport

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/quic-go/quic-go"
)

// gossipConn carries one exchange of memberlist, one frame each way: length
// (4), body. The frame makes it possible to check a side as a whole before
// memberlist reads its first byte. It is used by one goroutine.
type gossipConn struct {
	g    *gossip
	l    *link
	s    *quic.Stream
	head []byte // goes in front of the first write

	body   []byte // of the peer's frame, what is still unread
	filled bool
}

var _ net.Conn = (*gossipConn)(nil)

// fill reads and checks the peer's frame.
func (c *gossipConn) fill() error {
	c.filled = true
	var head [4]byte
	if err := readHead(c.s, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > MaxCall {
		return malformed("exchange of %d bytes, at most %d are allowed", n, MaxCall)
	}
	body, err := readBody(c.s, int(n))
	if err != nil {
		return err
	}
	if err := c.g.check.exchange(body); err != nil {
		return err
	}
	c.body = body
	return nil
}

// Read returns the peer's frame, and io.EOF after it.
func (c *gossipConn) Read(p []byte) (int, error) {
	if !c.filled {
		if err := c.fill(); err != nil {
			// Memberlist closes exchanges that it has no room for without
			// a word, so that an empty answer proves nothing.
			if !errors.Is(err, io.EOF) {
				c.l.blame(err)
			}
			return 0, err
		}
	}
	if len(c.body) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.body)
	c.body = c.body[n:]
	return n, nil
}

// Write sends p as this side's frame. Memberlist writes once.
func (c *gossipConn) Write(p []byte) (int, error) {
	if len(p) > MaxCall {
		return 0, ErrTooLarge
	}
	out := append(make([]byte, 0, len(c.head)+4+len(p)), c.head...)
	c.head = nil
	out = binary.BigEndian.AppendUint32(out, uint32(len(p)))
	if _, err := c.s.Write(append(out, p...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends both directions; what was written still arrives.
func (c *gossipConn) Close() error {
	c.s.CancelRead(0)
	return c.s.Close()
}

func (c *gossipConn) LocalAddr() net.Addr                { return c.l.conn.LocalAddr() }
func (c *gossipConn) RemoteAddr() net.Addr               { return c.l.conn.RemoteAddr() }
func (c *gossipConn) SetDeadline(t time.Time) error      { return c.s.SetDeadline(t) }
func (c *gossipConn) SetReadDeadline(t time.Time) error  { return c.s.SetReadDeadline(t) }
func (c *gossipConn) SetWriteDeadline(t time.Time) error { return c.s.SetWriteDeadline(t) }
