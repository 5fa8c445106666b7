package transport

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/time/rate"
)

// reads are those of the mesh's socket. QUIC gives a socket up at the first error of a read, and a
// node would end with it: for want of the kernel's buffers, say, which comes back.
type reads struct {
	log  *slog.Logger
	warn rate.Sometimes
}

// Pauses between reads that fail one after the other.
const (
	readPauseMin = time.Millisecond
	readPauseMax = 200 * time.Millisecond
)

func newReads(log *slog.Logger) *reads {
	return &reads{log: log, warn: rate.Sometimes{Interval: time.Minute}}
}

// patiently reads until that succeeds, or fails for good. It does so here, and not by telling QUIC of
// an error that passes: that would take what was read before for what it has read now.
func (r *reads) patiently(read func() error) error {
	for pause := readPauseMin; ; pause = min(2*pause, readPauseMax) {
		err := read()
		if err == nil || isFinal(err) {
			return err
		}
		r.warn.Do(func() {
			r.log.Warn("nothing can be read from the mesh's socket now; it is tried again", "error", err.Error())
		})
		time.Sleep(pause)
	}
}

// isFinal reports whether a read failed as its socket was closed, or its deadline has passed, by which QUIC
// ends a read that waits. Every other error is one of the kernel, or of one packet.
func isFinal(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe)
}
