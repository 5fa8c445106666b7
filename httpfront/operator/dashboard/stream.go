package dashboard

import (
	"io"
	"sync"
	"time"
)

// stream is what one reader gets: it blocks until there is something to say, and ends
// when the handler does, the reader may look no more, or what it follows is gone.
//
// There is no queue. While the connection takes nothing, nothing is read from here, and
// whatever happens meanwhile is told by one snapshot afterwards.
type stream struct {
	hub       *hub
	seen      *state        // the last that was told; nil: none yet
	pending   []byte        // of an event, and not read yet
	ended     bool          // when pending is read
	allowed   func() bool   // whether the reader still may look
	over      chan struct{} // closed when the handler ends
	heartbeat time.Duration
	extend    func() // is called before each event, so that a connection that takes it has time
	left      func() // is called once, by Close
	once      sync.Once
}

var _ io.ReadCloser = (*stream)(nil)

// Read returns parts of events. It blocks for a heartbeat at most.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.pending) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		s.next()
	}
	s.extend()
	n := copy(p, s.pending)
	s.pending = s.pending[n:]
	return n, nil
}

// Close lets the reader go. It may be called more than once.
func (s *stream) Close() error {
	s.once.Do(s.left)
	return nil
}

// next waits, and sets pending or ended or both.
func (s *stream) next() {
	beat := false
	if s.seen != nil {
		timer := time.NewTimer(s.heartbeat)
		defer timer.Stop()
		select {
		case <-s.seen.replaced:
		case <-s.over:
			s.ended = true
			return
		case <-timer.C:
			beat = true
		}
	}
	now := s.hub.current.Load()
	switch {
	case !s.allowed():
		s.pending, s.ended = []byte("event: revoked\ndata: {}\n\n"), true
	case now.gone:
		s.pending, s.ended = []byte("event: gone\ndata: {}\n\n"), true
	case beat && now == s.seen:
		s.pending = []byte(": still here\n\n")
	default:
		s.pending, s.seen = now.after(s.seen), now
	}
}
