//go:build unix

package upstream

import (
	"io"
	"net"
	"os"
	"syscall"

	"github.com/ropeline/ropeline/httpfront/conn/socket"
)

// look looks at a connection before anything is read of it. It is made once per connection, so that looking allocates nothing,
// and used by one goroutine at a time.
type look struct {
	raw  syscall.RawConn // nil: this connection cannot be looked at
	peek func(fd uintptr)
	wait func(fd uintptr) bool
	read func(fd uintptr)

	quiet bool // what peek has seen
	soon  bool // reads of the connection take what there is, and do not wait

	p   []byte // for read, and what came of it
	n   int
	err error
}

// on is to be called once, with the connection that l looks at: below TLS, if there is any.
func (l *look) on(c net.Conn) {
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			l.raw = raw
		}
	}
	l.peek = func(fd uintptr) {
		var p [1]byte
		_, err := socket.Peek(fd, &p)
		l.quiet = err == syscall.EAGAIN
	}
	l.wait = func(fd uintptr) (done bool) {
		l.peek(fd)
		return !l.quiet
	}
	l.read = func(fd uintptr) { l.n, l.err = socket.Read(fd, l.p) }
}

// isQuiet reports whether the connection is open and has nothing to read.
// Anything else means that the origin closed it, or speaks out of turn.
func (l *look) isQuiet() bool {
	return l.raw == nil || l.raw.Control(l.peek) == nil && l.quiet
}

// await waits until there is something to read, or the deadline for reads is over; nil if that cannot be told.
func (l *look) await() error {
	if l.raw == nil {
		return nil
	}
	return l.raw.Read(l.wait)
}

// take reads what there is and does not wait: the error is errNothingYet if that is nothing, or cannot be told.
func (l *look) take(p []byte) (int, error) {
	if l.raw == nil {
		return 0, errNothingYet
	}
	l.p, l.n, l.err = p, 0, nil
	err := l.raw.Control(l.read)
	l.p = nil
	switch {
	case err != nil:
	case l.err == syscall.EAGAIN:
		err = errNothingYet
	case l.err != nil:
		err = os.NewSyscallError("read", l.err)
	case l.n == 0:
		err = io.EOF
	}
	return l.n, err
}
