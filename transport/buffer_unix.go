//go:build unix

package transport

import (
	"net"
	"syscall"
)

// socketBuffers returns the sizes that the kernel gave a socket. Linux reports
// twice what may be used, and QUIC judges by the same number.
func socketBuffers(conn *net.UDPConn) (read, write int, ok bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	var errRead, errWrite error
	err = raw.Control(func(fd uintptr) {
		read, errRead = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF)
		write, errWrite = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF)
	})
	return read, write, err == nil && errRead == nil && errWrite == nil
}
