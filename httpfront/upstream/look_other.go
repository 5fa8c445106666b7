//go:build !unix

package upstream

import "net"

// look cannot look at a connection here; the idle timeout has to do, and reading is how to wait.
type look struct{ soon bool }

func (*look) on(net.Conn) {}

func (*look) isQuiet() bool { return true }

func (*look) await() error { return nil }

func (*look) take([]byte) (int, error) { return 0, errNothingYet }
