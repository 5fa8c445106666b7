package edge

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Patient returns ln, whose Accept fails only once it is closed. Other errors are of what comes back, descriptors or the kernel's
// buffers, or of one connection, of which the kernel tells here what became of it on the way: neither a crowd that uses something up
// nor a network or a firewall must cost those who are being served, nor end a node.
func Patient(ln net.Listener, log *slog.Logger) net.Listener {
	return &patient{Listener: ln, log: log, closed: make(chan struct{})}
}

type patient struct {
	net.Listener
	log    *slog.Logger
	closed chan struct{} // by Close
	once   sync.Once     // of closing it
}

// Pauses before another try to accept. Descriptors come free when a request or
// an idle connection ends, so long pauses would only lengthen the outage.
const (
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = 200 * time.Millisecond
)

// Accept waits for the next connection.
func (p *patient) Accept() (net.Conn, error) {
	for pause := acceptPauseMin; ; pause = min(2*pause, acceptPauseMax) {
		c, err := p.Listener.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) {
			return c, err
		}
		if pause == acceptPauseMin {
			p.log.Warn("no connection can be accepted now; it is tried again", "error", err)
		}
		select {
		case <-time.After(pause):
		case <-p.closed:
			return nil, net.ErrClosed
		}
	}
}

// Close stops listening.
func (p *patient) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.Listener.Close()
}
