package limit

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Standstill tells of requests that may have waited because the node stood still: its process
// was stopped, or its machine. They come over a long time and are read all at once, and who
// came as often as it may would be limited for that. So of each key as many of them as the
// limit says are let pass and not counted, once within a period. The zero value has not run
// yet.
type Standstill struct {
	ran  atomic.Int64 // Millis when the node was last seen to run; 0: never
	over atomic.Int64 // Millis until when requests that waited are read

	mu     sync.Mutex // guards the following
	passes map[Key]passes
}

// passes is how many requests of a key may still pass, and until when.
type passes struct {
	left  uint32
	until Millis
}

const (
	// stoodStill is how long a node that ticks some twenty times a second does not do so
	// before it is taken to have stood still. Shorter, and one that has much to do would be.
	stoodStill Millis = 1000

	// catchUp is for how long requests are read that waited.
	catchUp Millis = 1000

	// maxWaited is how many keys may have passed so within their periods. Those that find no
	// room are counted.
	maxWaited = 1 << 14
)

// Run says that the node runs. It is called some twenty times a second, and not by
// several at once.
func (s *Standstill) Run(now Millis) {
	if s.stands(now) {
		s.over.Store(int64(now + catchUp))
	}
	s.ran.Store(int64(now))
}

func (s *Standstill) stands(now Millis) bool {
	ran := Millis(s.ran.Load())
	return ran > 0 && now-ran > stoodStill
}

// Waited reports whether requests that come now may have waited.
func (s *Standstill) Waited(now Millis) bool {
	return now < Millis(s.over.Load()) || s.stands(now)
}

// Pass reports whether a request that may have waited passes without being counted. It is
// one of those that do if it counts, and else only asks.
func (s *Standstill) Pass(k Key, r *Terms, counts bool, now Millis) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.passes[k]
	if !ok || now >= p.until {
		if !ok && !s.roomFor(now) {
			return false
		}
		p = passes{r.Requests, now + r.Period}
	}
	if p.left == 0 {
		return false
	}
	if counts {
		p.left--
	}
	s.passes[k] = p
	return true
}

// roomFor reports whether there is room for another key.
func (s *Standstill) roomFor(now Millis) bool {
	if s.passes == nil {
		s.passes = map[Key]passes{}
	}
	if len(s.passes) == maxWaited {
		maps.DeleteFunc(s.passes, func(_ Key, p passes) bool { return now >= p.until })
	}
	return len(s.passes) < maxWaited
}
