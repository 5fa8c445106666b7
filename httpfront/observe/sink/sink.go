// Package sink keeps what is logged from holding up who logs it. The reader of a log may stop
// reading, or go away: a write waits for ever then, and with it whatever wrote the line.
package sink

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Sink hands lines on to a writer that may block or fail. It keeps a bounded number of bytes for
// it; lines beyond are dropped and counted. Any goroutine may call its methods.
type Sink struct {
	w       io.Writer
	most    int
	report  atomic.Pointer[func(dropped uint64)]
	dropped atomic.Uint64
	more    chan struct{} // holds one: there is something to write, or it is to end
	ended   chan struct{} // closed when all is written after Close

	mu      sync.Mutex // guards the following
	buf     []byte
	closing bool
}

// New returns a sink for w that keeps up to most bytes. It has to be closed.
func New(w io.Writer, most int) *Sink {
	s := &Sink{w: w, most: most, more: make(chan struct{}, 1), ended: make(chan struct{})}
	go s.run()
	return s
}

// Report has f called, by another goroutine, when lines are taken again after so many were
// dropped. f may write to the sink.
func (s *Sink) Report(f func(dropped uint64)) { s.report.Store(&f) }

// Write takes p, which is one or more whole lines, or drops it. It never waits, and never fails.
func (s *Sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	fits := len(s.buf)+len(p) <= s.most && !s.closing
	if fits {
		s.buf = append(s.buf, p...)
	}
	s.mu.Unlock()
	if !fits {
		s.dropped.Add(lines(p))
	}
	s.wake()
	return len(p), nil
}

// Dropped is how many lines the writer has not had, and will not have.
func (s *Sink) Dropped() uint64 { return s.dropped.Load() }

// Close has what is kept written, and waits for that up to limit. It reports whether all was.
// What is written from then on is dropped.
func (s *Sink) Close(limit time.Duration) bool {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.wake()
	select {
	case <-s.ended:
		return true
	case <-time.After(limit):
		return false
	}
}

func (s *Sink) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// run writes what is kept until the sink is closed.
func (s *Sink) run() {
	defer close(s.ended)
	var spare []byte
	var told uint64 // of those dropped
	takes := true   // the writer took all of the last lines
	for range s.more {
		s.mu.Lock()
		full, closing := s.buf, s.closing
		s.buf = spare[:0]
		s.mu.Unlock()
		if takes { // and there is room for a report
			told = s.tell(told)
		}
		if len(full) > 0 {
			takes = s.write(full)
		}
		spare = full
		if closing {
			return
		}
		if takes && s.dropped.Load() > told {
			s.wake()
		}
	}
}

// write reports whether all of p was taken.
func (s *Sink) write(p []byte) bool {
	n, err := s.w.Write(p)
	if err != nil {
		s.dropped.Add(lines(p[n:]))
	}
	return err == nil
}

// tell reports what was dropped since it was told, and returns what is told by then.
func (s *Sink) tell(told uint64) uint64 {
	now := s.dropped.Load()
	if report := s.report.Load(); report != nil && now > told {
		(*report)(now - told)
	}
	return now
}

func lines(p []byte) uint64 { return uint64(bytes.Count(p, []byte{'\n'})) }
