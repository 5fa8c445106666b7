//go:build unix

package httpfront

import (
	"crypto/tls"
	"net"
	"syscall"
)

// isQuiet reports whether an unused connection is open and has nothing to read.
// Anything else means that the origin closed it, or speaks out of turn.
func isQuiet(c net.Conn) bool {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true // done, whatever came of it: do not wait for bytes
	})
	return err == nil && quiet
}
