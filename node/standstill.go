package node

import (
	"sync"
	"sync/atomic"

	"github.com/ropeline/ropeline/node/limit"
)

// standstill lets requests on any goroutine ask whether they may have waited, and pass.
type standstill struct {
	seen atomic.Pointer[limit.Standstill] // nil: it has not run; replaced by the loop alone

	mu     sync.Mutex // guards the following; may be taken while a stripe of the tables is held
	passes limit.Passes
}

// run says that the node runs.
func (s *standstill) run(now limit.Millis) {
	var last limit.Standstill
	if seen := s.seen.Load(); seen != nil {
		last = *seen
	}
	s.seen.Store(new(last.Run(now)))
}

// waited reports whether requests that come now may have waited.
func (s *standstill) waited(now limit.Millis) bool {
	seen := s.seen.Load()
	return seen != nil && seen.Waited(now)
}

// pass reports whether a request that may have waited passes without being counted.
func (s *standstill) pass(k limit.Key, r *limit.Terms, counts bool, now limit.Millis) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.passes.Pass(k, r, counts, now)
}
