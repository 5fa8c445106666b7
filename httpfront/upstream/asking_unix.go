//go:build unix

package upstream

import (
	"net"
	"os"
	"syscall"

	"github.com/ropeline/ropeline/httpfront/conn/socket"
)

// asking looks at an unused connection, and sends a request and waits for the beginning of its
// answer. It does that in one wait of the connection where looking, writing and reading take
// three: a look says that there is nothing to read yet, so the read that would find that out after
// the request is not made. It is made once per connection, so that asking allocates nothing.
type asking struct {
	raw  syscall.RawConn // nil: this connection cannot be looked at
	look func(fd uintptr) bool
	next func(fd uintptr) bool

	quiet   bool         // what look has seen
	request []byte       // nil: it was sent
	sent    func([]byte) // is told of that
	n       int          // bytes of it that are sent
	reused  bool         // the connection has had another request, whose answer may go on
	err     error
}

// on is to be called once, with the connection that a is about: below TLS, if there is any.
func (a *asking) on(c net.Conn) {
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			a.raw = raw
		}
	}
	a.look, a.next = a.peek, a.step
}

// isQuiet reports whether the connection is open and has nothing to read.
// Anything else means that the origin closed it, or speaks out of turn. Only one
// goroutine may ask at a time.
func (a *asking) isQuiet() bool {
	if a.raw == nil {
		return true
	}
	return a.raw.Read(a.look) == nil && a.quiet
}

// peek is done, whatever came of it: it does not wait for bytes.
func (a *asking) peek(fd uintptr) (done bool) {
	var p [1]byte
	_, err := socket.Peek(fd, &p)
	a.quiet = err == syscall.EAGAIN
	return true
}

// sendAndWait sends the request on c, which has no TLS, and waits until something comes or the deadline for reads is over. As with
// Ask, the error may be ErrStale.
func (c *Conn) sendAndWait(request []byte, sent func([]byte)) error {
	a := &c.ask
	if a.raw == nil {
		return c.lookAndWrite(request, sent)
	}
	a.request, a.sent, a.n, a.reused, a.err = request, sent, 0, c.reused, nil
	for {
		err := a.raw.Read(a.next)
		if err == nil {
			err = a.err
		}
		if c.reads.Again(err) {
			continue
		}
		if rest := a.request; rest != nil { // not all was taken at once, or nothing at all
			a.request = nil
			if err == nil {
				_, err = c.Write(rest[a.n:])
			}
			sent(rest)
		}
		return err
	}
}

// step is called when a wait may be over, with reads prepared to be waited for: what comes
// from then on ends the wait. It returns false to have waited on.
func (a *asking) step(fd uintptr) (done bool) {
	if a.request == nil {
		return true // something has come
	}
	if a.peek(fd); !a.quiet && a.reused {
		a.err = ErrStale // it would be taken for the answer
		return true
	}
	n, err := socket.Write(fd, a.request)
	switch {
	case err == syscall.EAGAIN:
	case err != nil:
		a.err = os.NewSyscallError("write", err)
	case n < len(a.request):
		a.n = n
	default:
		a.sent(a.request)
		a.request = nil
		return !a.quiet // what had come before would not end a wait
	}
	return true
}
