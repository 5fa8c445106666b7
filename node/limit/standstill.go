package limit

import "maps"

// Standstill tells of requests that may have waited because the node stood still: its process
// was stopped, or its machine. They come over a long time and are read all at once, and who
// came as often as it may would be limited for that; Passes lets them pass. The zero value has
// not run yet.
type Standstill struct {
	ran  Millis // when the node was last seen to run; 0: never
	over Millis // until when requests that waited are read
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

// Run returns what is known once the node is seen to run, which is some twenty times a second.
func (s Standstill) Run(now Millis) Standstill {
	if s.stands(now) {
		s.over = now + catchUp
	}
	s.ran = now
	return s
}

func (s Standstill) stands(now Millis) bool { return s.ran > 0 && now-s.ran > stoodStill }

// Waited reports whether requests that come now may have waited.
func (s Standstill) Waited(now Millis) bool { return now < s.over || s.stands(now) }

// Passes lets pass requests that may have waited: of each key as many as the limit says,
// uncounted, once within a period. The zero value has let none pass.
type Passes struct {
	byKey  map[Key]passes
	looked Millis // when those were last looked for that are over
}

// passes is how many requests of a key may still pass, and until when.
type passes struct {
	left  uint32
	until Millis
}

// Pass reports whether a request that may have waited passes without being counted. It is
// one of those that do if it counts, and else only asks.
func (s *Passes) Pass(k Key, r *Terms, counts bool, now Millis) bool {
	p, ok := s.byKey[k]
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
	s.byKey[k] = p
	return true
}

// roomFor reports whether there is room for another key.
func (s *Passes) roomFor(now Millis) bool {
	if s.byKey == nil {
		s.byKey = map[Key]passes{}
	}
	if len(s.byKey) < maxWaited {
		return true
	}
	// A flood of keys must not have all be looked at for each: the node would not catch up.
	if now-s.looked < catchUp {
		return false
	}
	s.looked = now
	maps.DeleteFunc(s.byKey, func(_ Key, p passes) bool { return now >= p.until })
	return len(s.byKey) < maxWaited
}
