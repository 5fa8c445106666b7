package memnet

import (
	"container/heap"
	"net/netip"
	"sync"
	"time"

	"github.com/ropeline/ropeline/transport"
)

// packet is what travels. Which fields count depends on kind.
type packet struct {
	from     transport.PeerID
	fromAddr netip.AddrPort
	kind     packetKind

	method uint8 // or the kind of a message
	body   []byte
	call   uint64 // number of a call, made by the caller
	err    error  // of an answer
	expiry time.Time

	beat beat
}

type packetKind uint8

const (
	message packetKind = iota
	request
	answer
	heartbeat
	goodbye
)

// inbox delivers packets in the order of their arrival times, and packets of
// the same time in the order in which they were sent.
type inbox struct {
	wake chan struct{} // one token when the head may have changed

	mu   sync.Mutex // guards the following
	line arrivals
	seq  uint64
}

type arrival struct {
	at  time.Time
	seq uint64
	p   packet
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

func (b *inbox) put(p packet, delay time.Duration) {
	b.mu.Lock()
	b.seq++
	heap.Push(&b.line, arrival{at: time.Now().Add(delay), seq: b.seq, p: p})
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take returns the next packet if it has arrived, else how long until it
// does; a day when there is none.
func (b *inbox) take() (packet, time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.line) == 0 {
		return packet{}, 24 * time.Hour, false
	}
	if wait := time.Until(b.line[0].at); wait > 0 {
		return packet{}, wait, false
	}
	return heap.Pop(&b.line).(arrival).p, 0, true
}

// arrivals is a heap for container/heap.
type arrivals []arrival

func (a arrivals) Len() int { return len(a) }
func (a arrivals) Less(i, j int) bool {
	if !a[i].at.Equal(a[j].at) {
		return a[i].at.Before(a[j].at)
	}
	return a[i].seq < a[j].seq
}
func (a arrivals) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)   { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	old := *a
	last := old[len(old)-1]
	old[len(old)-1] = arrival{}
	*a = old[:len(old)-1]
	return last
}
