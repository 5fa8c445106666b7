package poll

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What happened to a socket, as [Poller.Wait] tells it.
const (
	Readable = unix.EPOLLIN
	Writable = unix.EPOLLOUT
	Ended    = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR // the peer sends no more, or it is broken
)

// Poller tells which sockets something happened to. It belongs to one goroutine.
type Poller struct {
	fd     int
	events []unix.EpollEvent
	coarse bool // the kernel is too old for waits below a millisecond
}

// New returns a poller that tells of up to most events at a time. Close it.
func New(most int) (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return &Poller{fd: fd, events: make([]unix.EpollEvent, most)}, nil
}

// Close forgets all sockets; they stay open.
func (p *Poller) Close() { _ = unix.Close(p.fd) }

// Add tells of a socket from now on, until it is closed. Its events have key in Fd and version in Pad, which
// tells those of a socket from those of the one that had its key before. An event is told once (edge
// triggered): read until a read is short, and to the end where the peer has ended.
func (p *Poller) Add(fd int, key, version int32) error {
	ev := unix.EpollEvent{Fd: key, Pad: version, Events: Readable | Writable | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// Wait waits for events, for up to d, and not at all if d is not above 0. What it returns holds until the
// next call. It may return nothing before d is over.
//
// The scheduler is not told of this either: handing the processor on and getting it back costs, where little
// is to do, nearly as much as the request waited for. Other goroutines that need the same one get it as from
// any that computes for long, within 10 ms; let d be short.
func (p *Poller) Wait(d time.Duration) ([]unix.EpollEvent, error) {
	n, errno := p.wait(max(d, 0))
	if errno == unix.ENOSYS && !p.coarse {
		p.coarse = true
		n, errno = p.wait(max(d, 0))
	}
	switch errno {
	case 0:
		return p.events[:n], nil
	case unix.EINTR:
		return nil, nil
	}
	return nil, fmt.Errorf("epoll: %w", errno)
}

func (p *Poller) wait(d time.Duration) (int, unix.Errno) {
	at, most := uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events))
	switch {
	case d == 0:
		n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), at, most, 0, 0, 0)
		return int(n), errno
	case p.coarse: // rounded down: rather look too often than sleep too long
		n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), at, most, uintptr(d/time.Millisecond), 0, 0)
		return int(n), errno
	}
	ts := unix.NsecToTimespec(int64(d))
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), at, most, uintptr(unsafe.Pointer(&ts)), 0, 0)
	return int(n), errno
}

// Read reads what a socket has, and waits for nothing. The scheduler is not told, which saves a part of the
// cost of a short call; so does asking for a socket rather than for any file.
func Read(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// Write writes as much as a socket takes, as [Read] reads. b is not empty.
func Write(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}
