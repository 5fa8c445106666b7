//go:build linux

package socket

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Read reads what there is from a socket that does not block; syscall.EAGAIN if that is nothing.
// It returns 0 and no error at the end. p is not empty.
func Read(fd uintptr, p []byte) (int, error) {
	n, err := call(syscall.SYS_READ, fd, p, 0)
	arrived(fd)
	return n, err
}

// Peek is Read of one byte that stays there for the next Read.
func Peek(fd uintptr, p *[1]byte) (int, error) {
	return call(syscall.SYS_RECVFROM, fd, p[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
}

// Write writes as much of p as goes without waiting; syscall.EAGAIN if that is nothing. p is
// not empty.
func Write(fd uintptr, p []byte) (int, error) {
	written(fd)
	return call(syscall.SYS_WRITE, fd, p, 0)
}

// call makes a call that was interrupted again.
func call(which, fd uintptr, p []byte, flags uintptr) (int, error) {
	for {
		n, _, e := syscall.RawSyscall6(which, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), flags, 0, 0)
		switch e {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, e
		}
	}
}

// left reports whether the other side sends no more, whatever of it is still to be read.
func left(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}
