package udp

import (
	"container/heap"
	"sync"
	"time"
)

// later does things at their time, one after the other.
type later struct {
	wake chan struct{} // something earlier than all others was added, or the end

	mu     sync.Mutex // guards the following
	todo   tasks
	number uint64
	closed bool
}

type task struct {
	at     time.Time
	number uint64 // of those with one time, the first added goes first
	do     func()
}

// maxTasks bounds what is under way. Beyond it things are dropped, as a router
// drops what does not fit its queue.
const maxTasks = 1 << 16

func newLater() *later { return &later{wake: make(chan struct{}, 1)} }

func (l *later) add(at time.Time, do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.todo) >= maxTasks {
		return
	}
	l.number++
	heap.Push(&l.todo, task{at, l.number, do})
	if l.todo[0].number == l.number {
		l.poke()
	}
}

func (l *later) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *later) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.poke()
}

func (l *later) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		do, wait, closed := l.next(time.Now())
		if closed {
			return
		}
		if do != nil {
			do()
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-l.wake:
		}
	}
}

// next returns what is due, or how long nothing will be.
func (l *later) next(now time.Time) (do func(), wait time.Duration, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, 0, true
	case len(l.todo) == 0:
		return nil, time.Hour, false
	case l.todo[0].at.After(now):
		return nil, l.todo[0].at.Sub(now), false
	}
	return heap.Pop(&l.todo).(task).do, 0, false
}

type tasks []task

func (h tasks) Len() int { return len(h) }
func (h tasks) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].number < h[j].number
	}
	return h[i].at.Before(h[j].at)
}
func (h tasks) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *tasks) Push(x any)   { *h = append(*h, x.(task)) }
func (h *tasks) Pop() any {
	t := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return t
}
