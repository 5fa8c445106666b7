package transport

import (
	"encoding/binary"
	"sync"
	"time"
)

const (
	clockSamples = 16

	pingSize = 8
	pongSize = 24
)

// clockSample is one exchange of times.
type clockSample struct{ rtt, offset time.Duration }

// clockFilter keeps the last few samples. The one with the shortest way is
// believed: whatever a packet waits on one way only, it adds to the distance
// and, by half, to the error of the offset. The zero value is empty.
type clockFilter struct {
	mu      sync.Mutex // guards the following
	samples [clockSamples]clockSample
	n       int // samples ever taken
}

func (f *clockFilter) add(s clockSample) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.samples[f.n%clockSamples] = s
	f.n++
}

// best returns the sample with the shortest round trip, and reports whether
// there is one.
func (f *clockFilter) best() (clockSample, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == 0 {
		return clockSample{}, false
	}
	best := f.samples[0]
	for _, s := range f.samples[1:min(f.n, clockSamples)] {
		if s.rtt < best.rtt {
			best = s
		}
	}
	return best, true
}

// newSample computes distance and offset from the four moments of an
// exchange: sent by us at t1, received by the peer at t2, answered at t3,
// and received by us elapsed after t1. t1, t2 and t3 are Unix nanoseconds by
// the clock of whoever took them; elapsed is monotonic, so that a step of our
// own clock in between does no harm. It reports whether the sample makes sense.
//
//	us    t1 ────╮            ╭──── t1+elapsed
//	             ╰─╮        ╭─╯
//	peer           t2 ──── t3
func newSample(t1, t2, t3 int64, elapsed time.Duration) (clockSample, bool) {
	stay := time.Duration(t3 - t2)
	if stay < 0 || stay > elapsed {
		return clockSample{}, false
	}
	t4 := t1 + int64(elapsed)
	// Halved before the sum: a peer may send any number.
	offset := time.Duration((t2-t1)/2 + (t3-t4)/2)
	return clockSample{rtt: elapsed - stay, offset: offset}, true
}

func appendPing(dst []byte, t1 int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, datagramPing), uint64(t1))
}

func appendPong(dst []byte, t1, t2, t3 int64) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, datagramPong), uint64(t1))
	dst = binary.BigEndian.AppendUint64(dst, uint64(t2))
	return binary.BigEndian.AppendUint64(dst, uint64(t3))
}

// parsePing and parsePong take a datagram without its first byte.
func parsePing(b []byte) (t1 int64, ok bool) {
	if len(b) != pingSize {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(b)), true
}

func parsePong(b []byte) (t1, t2, t3 int64, ok bool) {
	if len(b) != pongSize {
		return 0, 0, 0, false
	}
	return int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:])), int64(binary.BigEndian.Uint64(b[16:])), true
}
