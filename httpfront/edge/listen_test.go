package edge

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront/http1"
)

// TestNothingIsLeftOfConnections holds that places are given back by whatever way a
// connection ends.
func TestNothingIsLeftOfConnections(t *testing.T) {
	ln := must.Do(net.Listen("tcp", "127.0.0.1:0"))
	l := New(ln, Config{
		Proxied: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Limits: Limits{Conns: 3, PerAddress: 2, Handshakes: 2},
		Head: 5 * time.Second, Write: time.Second, Log: slog.New(slog.DiscardHandler),
		Refuse: func(http1.Refusal) []byte { return nil },
	}, func(e *Conn) { e.Close() })
	var accepts sync.WaitGroup
	accepts.Go(func() { l.accept() })
	const header = "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"
	for i, raw := range []string{
		header, header + "GET", "PROXY UNKNOWN\r\n", "PROXY nonsense\r\n", "", "P", header, header, "PROXY TCP6 ::1 ::1 1 2\r\n",
	} {
		c := must.Do(net.Dial("tcp", ln.Addr().String()))
		io.WriteString(c, raw)
		if i%2 == 0 {
			c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			io.ReadAll(c)
		}
		c.Close()
	}
	l.Close()
	accepts.Wait()
	l.open.Wait()
	if len(l.conns) != 0 || l.settled != 0 || len(l.addresses) != 0 || l.preparing.Len() != 0 || len(l.polite) != 0 {
		t.Errorf("left: %d connections, %d settled, addresses %v, %d in preparation, %d being told", len(l.conns), l.settled, l.addresses, l.preparing.Len(), len(l.polite))
	}
}
