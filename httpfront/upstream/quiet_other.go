//go:build !unix

package upstream

import "net"

// quietness cannot look at a connection here; the idle timeout has to do.
type quietness struct{}

func newQuietness(net.Conn) *quietness { return &quietness{} }

func (*quietness) isQuiet() bool { return true }
