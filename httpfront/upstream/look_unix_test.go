//go:build unix

package upstream

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
)

// Who waits for an answer has no buffer, since most of those who wait do so for slow origins.
func TestWhoWaitsHasNoBuffer(t *testing.T) {
	fewAndMany(t, func(t *testing.T, g *Group, ln net.Listener) {
		c, o := dialled(t, g, ln)
		wait, answer := c.look.wait, sync.OnceFunc(func() { go o.answers(4, "one") })
		c.look.wait = func(fd uintptr) bool {
			equal(t, "without one", c.br == nil, true)
			answer()
			return wait(fd)
		}
		c.asks(t, "one")
	})
}

// A look finds what there is, or how the connection has ended, and does not wait.
func TestALookDoesNotWait(t *testing.T) {
	for name, c := range map[string]struct {
		does func(c *Conn, o *origin)
		want string
		err  error
	}{
		"nothing":     {func(*Conn, *origin) {}, "", errNothingYet},
		"something":   {func(_ *Conn, o *origin) { o.Write([]byte("hello")) }, "hello", nil},
		"the end":     {func(_ *Conn, o *origin) { o.Close() }, "", io.EOF},
		"a reset":     {func(_ *Conn, o *origin) { o.Conn.(*net.TCPConn).SetLinger(0); o.Close() }, "", syscall.ECONNRESET},
		"closed here": {func(c *Conn, _ *origin) { c.Abort() }, "", net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			g, ln := asked(t)
			k, o := dialled(t, g, ln)
			c.does(k, o)
			buf, n, err := make([]byte, 9), 0, error(nil)
			k.look.soon = true
			waitFor(t, "the kernel to have it", func() bool {
				n, err = k.Read(buf)
				return err != errNothingYet || c.err == errNothingYet
			})
			if string(buf[:n]) != c.want || !errors.Is(err, c.err) || k.Received() != (n > 0) || k.Broken() != (err != nil && err != errNothingYet) {
				t.Errorf("got %q, %v, want %q, %v; received is %v, broken %v", buf[:n], err, c.want, c.err, k.Received(), k.Broken())
			}
		})
	}
}
