//go:build !unix

package httpfront

import "net"

// isQuiet cannot tell here; the idle timeout has to do.
func isQuiet(net.Conn) bool { return true }
