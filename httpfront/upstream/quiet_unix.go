//go:build unix

package upstream

import (
	"crypto/tls"
	"net"
	"syscall"

	"github.com/ropeline/ropeline/httpfront/conn/socket"
)

// quietness looks at an unused connection. It is made once per connection, so
// that looking allocates nothing.
type quietness struct {
	raw   syscall.RawConn // nil: this connection cannot be looked at
	look  func(fd uintptr) bool
	byte  [1]byte
	quiet bool
}

func newQuietness(c net.Conn) *quietness {
	q := &quietness{}
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			q.raw = raw
		}
	}
	q.look = func(fd uintptr) bool {
		_, err := socket.Peek(fd, &q.byte)
		q.quiet = err == syscall.EAGAIN
		return true // done, whatever came of it: do not wait for bytes
	}
	return q
}

// isQuiet reports whether the connection is open and has nothing to read.
// Anything else means that the origin closed it, or speaks out of turn. Only one
// goroutine may ask at a time.
func (q *quietness) isQuiet() bool {
	if q.raw == nil {
		return true
	}
	q.quiet = false
	return q.raw.Read(q.look) == nil && q.quiet
}
