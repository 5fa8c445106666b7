package bare

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropeline/ropeline/bench/rate/internal/poll"
)

const (
	listens    = -1 // the key of the socket that listens
	closed     = -1 // the state of a connection that is not there
	mostEvents = 64
	backlog    = 4096
	readSize   = 64 << 10
)

// Server is a server that listens.
type Server struct {
	fd     int
	addr   netip.AddrPort
	answer []byte
	poller *poll.Poller
	states []int // of connections by file descriptor: how much of the end of a head has come
	buf    []byte
}

// Listen opens the port. Nothing is answered before Serve.
func Listen(cfg Config) (*Server, error) {
	at, err := netip.ParseAddrPort(cfg.Address)
	if err != nil || !at.Addr().Is4() || cfg.Body < 0 {
		return nil, fmt.Errorf("bare: listen on %q, body of %d bytes: IPv4 and a port are wanted, and a size", cfg.Address, cfg.Body)
	}
	poller, err := poll.New(mostEvents)
	if err != nil {
		return nil, err
	}
	s := &Server{fd: -1, answer: cfg.answer(), poller: poller, buf: make([]byte, readSize)}
	if err := s.listen(at); err != nil {
		s.close()
		return nil, fmt.Errorf("bare: listen on %s: %w", at, err)
	}
	return s, nil
}

func (s *Server) listen(at netip.AddrPort) (err error) {
	if s.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if err := unix.Bind(s.fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}); err != nil {
		return err
	}
	if err := unix.Listen(s.fd, backlog); err != nil {
		return err
	}
	name, err := unix.Getsockname(s.fd)
	if err != nil {
		return err
	}
	own := name.(*unix.SockaddrInet4) // it is what was bound
	s.addr = netip.AddrPortFrom(netip.AddrFrom4(own.Addr), uint16(own.Port))
	return s.poller.Add(s.fd, listens)
}

// Addr returns where the server listens.
func (s *Server) Addr() net.Addr { return net.TCPAddrFromAddrPort(s.addr) }

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
