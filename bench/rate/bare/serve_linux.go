package bare

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropeline/ropeline/bench/rate/internal/poll"
)

const (
	listens    = -1 // the key of the socket that listens
	closed     = -1 // the state of a connection that is not there
	mostEvents = 64
	readSize   = 64 << 10
)

// Server is a server that listens.
type Server struct {
	fd     int
	addr   net.Addr
	answer []byte
	poller *poll.Poller
	states []int // of connections by file descriptor: how much of the end of a head has come
	buf    []byte
}

// Listen opens the port. Nothing is answered before Serve.
func Listen(cfg Config) (*Server, error) {
	if cfg.Body < 0 {
		return nil, fmt.Errorf("bare: a body of %d bytes: a size is wanted", cfg.Body)
	}
	l, err := net.Listen("tcp4", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("bare: %w", err)
	}
	defer l.Close()
	poller, err := poll.New(mostEvents)
	if err != nil {
		return nil, err
	}
	s := &Server{fd: -1, addr: l.Addr(), answer: cfg.answer(), poller: poller, buf: make([]byte, readSize)}
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err == nil { // a number of its own, of which Go's own poller is not told
		err = raw.Control(func(fd uintptr) { s.fd, _ = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	}
	if err = errors.Join(err, poller.Add(s.fd, listens)); err != nil {
		s.close()
		return nil, fmt.Errorf("bare: listen on %s: %w", s.addr, err)
	}
	return s, nil
}

// Addr returns where the server listens.
func (s *Server) Addr() net.Addr { return s.addr }

// Serve answers until ctx ends, on a thread of its own, and closes everything. It may be called once.
func (s *Server) Serve(ctx context.Context) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with it
		defer s.close()
		for err == nil && ctx.Err() == nil {
			err = s.step()
		}
	}()
	<-done
	return err
}

func (s *Server) close() {
	for fd, state := range s.states {
		if state != closed {
			poll.Close(fd)
		}
	}
	poll.Close(s.fd)
	s.poller.Close()
}

// step answers what has come.
func (s *Server) step() error {
	events, err := s.poller.Wait(20 * time.Millisecond)
	for _, ev := range events {
		if ev.Fd == listens {
			s.accept()
		} else if !s.serve(int(ev.Fd)) {
			poll.Close(int(ev.Fd))
			s.states[ev.Fd] = closed
		}
	}
	return err
}

func (s *Server) accept() {
	fd, _, err := unix.Accept4(s.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	if err != nil { // it has gone again, or there are no more files
		return
	}
	for len(s.states) <= fd {
		s.states = append(s.states, closed)
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // it would be slower and as good
	if s.poller.Add(fd, int32(fd)) != nil {
		poll.Close(fd)
		return
	}
	s.states[fd] = 0
}

// serve reads some of what has come on a connection, and answers. It reports whether that goes on: not with who asks
// for more than the system keeps, without reading.
func (s *Server) serve(fd int) bool {
	n, errno := poll.Read(fd, s.buf)
	if errno == unix.EAGAIN || errno == unix.EINTR {
		return true
	}
	if errno != 0 || n == 0 {
		return false
	}
	var heads int
	heads, s.states[fd] = scan(s.buf[:n], s.states[fd])
	for range heads {
		if n, _ := poll.Write(fd, s.answer); n < len(s.answer) {
			return false
		}
	}
	return true
}
