package rate

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller tells which sockets something happened to. It belongs to one goroutine.
type poller struct {
	fd     int
	events []unix.EpollEvent
}

// newPoller returns a poller that tells of up to most events at a time. Close it.
func newPoller(most int) (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return &poller{fd: fd, events: make([]unix.EpollEvent, most)}, nil
}

// close forgets all sockets; they stay open.
func (p *poller) close() { _ = unix.Close(p.fd) }

// dial connects to host:port, by IPv4, and tells of the socket by its key whenever something can be read of it, from then
// on until it is closed. It returns the number of the socket, and waits for the server, which takes a connection at once,
// unless it is far or its line is full.
func (p *poller) dial(address string, key int32) (fd int, err error) {
	at, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return -1, err
	}
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err == nil {
		err = errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1), // of one write nothing is to be held back
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 10}),
			connect(fd, at.AddrPort()),
			unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Fd: key, Events: unix.EPOLLIN}))
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("connect to %s: %w", address, err)
	}
	return fd, nil
}

// connect goes on after a signal, as Go sends some to its own threads: where a socket has a timeout, the kernel does not.
func connect(fd int, to netip.AddrPort) (err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().Unmap().As4()})
	}
	return err
}

// wait waits for events, for up to d, and not at all if d is not above 0. What it returns holds until the
// next call. It may return nothing before d is over.
//
// The scheduler is not told of this either: handing the processor on and getting it back costs, where little
// is to do, nearly as much as the request waited for. Other goroutines that need the same one get it as from
// any that computes for long, within 10 ms; let d be short.
func (p *poller) wait(d time.Duration) ([]unix.EpollEvent, error) {
	ts := unix.NsecToTimespec(int64(max(d, 0)))
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), // since Linux 5.11
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	switch errno {
	case 0:
		return p.events[:n], nil
	case unix.EINTR:
		return nil, nil
	}
	return nil, fmt.Errorf("epoll: %w", errno)
}

// receive reads what a socket has, and waits for nothing. The scheduler is not told, which saves a part of the
// cost of a short call; so does asking for a socket rather than for any file.
func receive(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// transmit writes as much as a socket takes, as [receive] reads. b is not empty.
func transmit(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}
