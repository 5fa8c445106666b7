//go:build unix && !linux

package socket

import "syscall"

// Read reads what there is from a socket that does not block; syscall.EAGAIN if that is nothing.
// It returns 0 and no error at the end. p is not empty.
func Read(fd uintptr, p []byte) (int, error) {
	return again(func() (int, error) { return syscall.Read(int(fd), p) })
}

// Peek is Read of one byte that stays there for the next Read.
func Peek(fd uintptr, p *[1]byte) (int, error) {
	return again(func() (int, error) {
		n, _, err := syscall.Recvfrom(int(fd), p[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return n, err
	})
}

// Write writes as much of p as goes without waiting; syscall.EAGAIN if that is nothing. p is
// not empty.
func Write(fd uintptr, p []byte) (int, error) {
	return again(func() (int, error) { return syscall.Write(int(fd), p) })
}

// again makes a call that was interrupted again.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		switch {
		case err == nil:
			return n, nil
		case err != syscall.EINTR:
			return 0, err
		}
	}
}

// left reports whether the other side sends no more, if nothing of it is still to be read.
func left(fd uintptr) bool {
	n, err := Peek(fd, new([1]byte))
	return n == 0 && err != syscall.EAGAIN
}
