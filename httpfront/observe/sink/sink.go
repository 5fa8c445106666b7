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
// it; lines beyond are dropped and counted. Any goroutine may call its methods; Run has to run for
// anything to be written.
type Sink struct {
	w       io.Writer
	most    int
	every   time.Duration
	report  atomic.Pointer[func(dropped uint64)]
	written atomic.Uint64
	dropped atomic.Uint64
	more    chan struct{} // holds one: what is kept is to be written, or it is to end
	ended   chan struct{} // closed when all is written after Close

	mu      sync.Mutex // guards the following
	buf     []byte
	closing bool
}

// New returns a sink for w that keeps up to most bytes, and as many while they are written. Lines
// wait for others until half of that is full, or for as long as every says; 0 is not at all. Any
// other has w called as often, with no lines if there are none.
func New(w io.Writer, most int, every time.Duration) *Sink {
	return &Sink{
		w: w, most: most, every: every, buf: make([]byte, 0, most),
		more: make(chan struct{}, 1), ended: make(chan struct{}),
	}
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
	now := s.every == 0 || len(s.buf) >= s.most/2
	s.mu.Unlock()
	if !fits {
		s.dropped.Add(lines(p))
	}
	if now {
		s.Flush()
	}
	return len(p), nil
}

// Written is how many lines the writer has had.
func (s *Sink) Written() uint64 { return s.written.Load() }

// Dropped is how many lines the writer has not had, and will not have.
func (s *Sink) Dropped() uint64 { return s.dropped.Load() }

// Close has what is kept written, and waits for that up to limit. It reports whether all was.
// What is written from then on is dropped.
func (s *Sink) Close(limit time.Duration) bool {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.Flush()
	select {
	case <-s.ended:
		return true
	case <-time.After(limit):
		return false
	}
}

// Flush has what is kept written now. It does not wait for that.
func (s *Sink) Flush() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// Run writes what is kept until the sink is closed.
func (s *Sink) Run() {
	defer close(s.ended)
	spare := make([]byte, 0, s.most)
	var told uint64 // of those dropped
	takes := true   // the writer took all of the last lines
	var tick <-chan time.Time
	if s.every > 0 {
		tick = time.Tick(s.every)
	}
	for {
		select {
		case <-s.more:
		case <-tick:
		}
		s.mu.Lock()
		full, closing := s.buf, s.closing
		s.buf = spare[:0]
		s.mu.Unlock()
		if takes { // and there is room for a report
			told = s.tell(told)
		}
		if len(full) > 0 || s.every > 0 {
			takes = s.write(full)
		}
		spare = full
		if closing {
			return
		}
		if takes && s.dropped.Load() > told {
			s.Flush()
		}
	}
}

// write reports whether all of p was taken.
func (s *Sink) write(p []byte) bool {
	n, err := s.w.Write(p)
	s.written.Add(lines(p[:n]))
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
