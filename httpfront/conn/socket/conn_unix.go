//go:build unix

package socket

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// conn is a TCP connection that is read and written by the functions above.
type conn struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out half
}

// Receive waits until something has come and returns as much of it as one buffer holds, which is
// not taken before: so a connection that is idle has none. Free takes the buffer back.
func (c *conn) Receive() (*Buffer, error) {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.in.got, c.in.fail = nil, nil
	err := c.raw.Read(c.in.receive)
	b := c.in.got
	c.in.got = nil
	if err == nil {
		err = c.in.fail
	}
	switch {
	case err != nil:
		Free(b)
		return nil, c.failed("read", err)
	case b.n == 0:
		Free(b)
		return nil, io.EOF
	}
	return b, nil
}

// half is one direction of a connection. Its function is made once, so that using it allocates
// nothing.
type half struct {
	next    func(fd uintptr) bool
	receive func(fd uintptr) bool // of in

	mu   sync.Mutex // guards the following, and is held for as long as an operation lasts
	p    []byte
	n    int // bytes of it that are done
	fail error
	got  *Buffer
}

// New returns c with what it reads and writes being read and written here, if c is a TCP
// connection; otherwise it returns c. What is wrapped is still used for all else.
func New(c net.Conn) net.Conn {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return c
	}
	k := &conn{TCPConn: t, raw: raw}
	k.in.next, k.in.receive, k.out.next = k.in.read, k.in.readLate, k.out.write
	return k
}

// Read reads what has come, and waits if there is nothing.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := c.in.do(p, c.raw.Read)
	if err != nil {
		return n, c.failed("read", err)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Write writes all of p.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.do(p, c.raw.Write)
	if err != nil {
		return n, c.failed("write", err)
	}
	return n, nil
}

// Left reports whether the other side has ended its direction, or all of the connection. It does not wait for a read
// that is under way.
func (c *conn) Left() (is bool) {
	return c.raw.Control(func(fd uintptr) { is = left(fd) }) != nil || is
}

// do has wait call what is next until it is done.
func (h *half) do(p []byte, wait func(func(uintptr) bool) error) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.p, h.n, h.fail = p, 0, nil
	err := wait(h.next)
	h.p = nil
	if err == nil {
		err = h.fail
	}
	return h.n, err
}

// read reports whether no more is to be waited for.
func (h *half) read(fd uintptr) bool {
	n, err := Read(fd, h.p)
	if err == syscall.EAGAIN {
		return false
	}
	h.n, h.fail = n, err
	return true
}

// readLate is read into a buffer that it takes only if there is something.
func (h *half) readLate(fd uintptr) bool {
	b := received.Get().(*Buffer)
	n, err := Read(fd, b.bytes[:])
	if err == syscall.EAGAIN {
		received.Put(b)
		return false
	}
	b.from, b.n = 0, max(n, 0)
	h.got, h.fail = b, err
	return true
}

func (h *half) write(fd uintptr) bool {
	for h.n < len(h.p) {
		n, err := Write(fd, h.p[h.n:])
		if err == syscall.EAGAIN {
			return false
		}
		if h.n += n; err != nil {
			h.fail = err
			return true
		}
	}
	return true
}

// failed returns err as package net would.
func (c *conn) failed(op string, err error) error {
	if e, ok := err.(*net.OpError); ok { // while waiting
		err = e.Err
	} else {
		err = os.NewSyscallError(op, err)
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
