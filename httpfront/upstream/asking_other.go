//go:build !unix

package upstream

import "net"

// asking cannot look at a connection here, nor wait for it but by reading; the idle timeout has to do.
type asking struct{}

func (*asking) on(net.Conn) {}

func (*asking) isQuiet() bool { return true }

func (c *Conn) sendAndWait(request []byte, sent func([]byte)) error {
	return c.lookAndWrite(request, sent)
}
