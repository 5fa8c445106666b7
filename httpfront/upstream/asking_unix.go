//go:build unix

package upstream

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/ropeline/ropeline/httpfront/conn/socket"
)

// asking sends a request and reads the beginning of its answer. It does in one wait of the
// connection what looking, writing and reading do in three: a look says that there is nothing
// to read yet, so the read that would find that out after the request is not made. It is made
// once per connection, so that asking allocates nothing.
type asking struct {
	raw     syscall.RawConn // nil: this connection can only be written and read
	request []byte          // nil: nothing is asked
	reused  bool            // the connection has had another request, whose answer may go on
	next    func(fd uintptr) bool

	into []byte
	n    int
	err  error
	sent bool
}

// newAsking returns what asks on a connection; on one with TLS nothing can.
func newAsking(q *quietness, tls bool) *asking {
	a := &asking{}
	if !tls {
		a.raw = q.raw
	}
	a.next = a.step
	return a
}

// canAsk reports whether read may be called once there is a request.
func (a *asking) canAsk() bool { return a.raw != nil }

// read sends the request, and waits for what comes then. It may be called again after a
// deadline.
func (a *asking) read(p []byte) (int, error) {
	a.into, a.n, a.err = p, 0, nil
	err := a.raw.Read(a.next)
	a.into = nil
	if err != nil {
		return 0, err
	}
	return a.n, a.err
}

// step is called when a wait may be over, with reads prepared to be waited for: what comes
// from then on ends the wait. It returns false to have waited on.
func (a *asking) step(fd uintptr) bool {
	if !a.sent {
		return a.send(fd)
	}
	n, err := socket.Read(fd, a.into)
	switch {
	case err == syscall.EAGAIN:
		return false
	case err != nil:
		a.err = os.NewSyscallError("read", err)
	case n == 0:
		a.err = io.EOF
	default:
		a.n = n
	}
	return true
}

// send sends the request, if nothing has come that would be taken for its answer.
func (a *asking) send(fd uintptr) (done bool) {
	_, err := socket.Peek(fd, (*[1]byte)(a.into))
	quiet := err == syscall.EAGAIN
	if !quiet && a.reused {
		a.err = ErrStale
		return true
	}
	n, err := socket.Write(fd, a.request)
	if err != nil && err != syscall.EAGAIN {
		a.err = os.NewSyscallError("write", err)
		return true
	}
	a.sent = true
	if a.request = a.request[n:]; len(a.request) > 0 {
		a.err = errUnsent
		return true
	}
	return !quiet && a.step(fd) // what had come before would not end a wait
}

// errUnsent says that the rest of the request is to be written first.
var errUnsent = errors.New("the origin does not take the whole request at once")
