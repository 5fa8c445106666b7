package edge

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
)

// Patient returns ln, whose Accept does not fail for want of what comes back: descriptors, or the kernel's buffers. A crowd that
// uses them up must not cost those who are being served, nor end a node.
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
		if err == nil || !isShortage(err) {
			return c, err
		}
		if pause == acceptPauseMin {
			p.log.Warn("no connection can be accepted now; if this happens again, raise the limit of open files", "error", err)
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

// isShortage reports whether accepting failed for want of something that comes
// back, or because the client went away.
func isShortage(err error) bool {
	for _, e := range [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
