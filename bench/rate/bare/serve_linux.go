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
	conns  []conn // by file descriptor
	buf    []byte
}

// conn is one connection.
type conn struct {
	state int    // how much of the end of a head has come
	owed  int    // answers that are still to be written
	out   []byte // what is left of the one that is being written
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
	return s.poller.Add(s.fd, listens, 0)
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
	for fd := range s.conns {
		if s.conns[fd].state >= 0 {
			_ = unix.Close(fd)
		}
	}
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
	}
	s.poller.Close()
}

// step answers what has come.
func (s *Server) step() error {
	events, err := s.poller.Wait(20 * time.Millisecond)
	for i := range events {
		switch ev := &events[i]; {
		case ev.Fd == listens:
			s.accept()
		case s.conns[ev.Fd].state < 0: // closed a moment ago
		default:
			if s.write(int(ev.Fd)) && ev.Events&(poll.Readable|poll.Ended) != 0 {
				s.read(int(ev.Fd), ev.Events&poll.Ended != 0)
			}
		}
	}
	return err
}

func (s *Server) accept() {
	for {
		fd, _, err := unix.Accept4(s.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
		case unix.ECONNABORTED, unix.EINTR:
			continue
		default: // nobody else is there, or there are no more files
			return
		}
		for len(s.conns) <= fd {
			s.conns = append(s.conns, conn{state: -1})
		}
		s.conns[fd] = conn{}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // it would be slower and as good
		if s.poller.Add(fd, int32(fd), 0) != nil {
			s.drop(fd)
		}
	}
}

func (s *Server) read(fd int, ended bool) {
	c := &s.conns[fd]
	for {
		n, errno := poll.Read(fd, s.buf)
		if errno == unix.EAGAIN || errno == unix.EINTR {
			return
		}
		if errno != 0 || n == 0 {
			s.drop(fd)
			return
		}
		var heads int
		heads, c.state = scan(s.buf[:n], c.state)
		c.owed += heads
		if !s.write(fd) || n < len(s.buf) && !ended {
			return
		}
	}
}

// write writes what is owed. It reports whether the connection goes on.
func (s *Server) write(fd int) bool {
	c := &s.conns[fd]
	for len(c.out) > 0 || c.owed > 0 {
		if len(c.out) == 0 {
			c.out = s.answer
			c.owed--
		}
		n, errno := poll.Write(fd, c.out)
		switch errno {
		case 0:
			c.out = c.out[n:]
		case unix.EAGAIN, unix.EINTR: // an event tells when to go on
			return true
		default:
			s.drop(fd)
			return false
		}
	}
	return true
}

func (s *Server) drop(fd int) {
	_ = unix.Close(fd)
	s.conns[fd] = conn{state: -1}
}
