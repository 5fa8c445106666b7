package node

import (
	"sync"
	"time"
)

// asks holds questions to other nodes about things named by K that have no reply yet.
// It joins those who ask the same at the same time, so that one pass sent a thousand
// times does not become a thousand messages. The zero value is ready.
type asks[K comparable] struct {
	mu       sync.Mutex // guards the following
	closed   bool       // nobody answers any more
	open     map[K]*asking[K]
	numbered map[uint64]*asking[K]
	order    []*asking[K] // as they came; answered ones go with the next sweep
	sent     int          // how many of order have been sent
	last     uint64       // number of the newest question
}

type asking[K comparable] struct {
	key     K
	number  uint64
	first   *pending   // who asked first
	since   time.Time  // when it was sent first; zero: not yet
	sent    time.Time  // the same of the newest time
	waiting []*pending // nil: answered
}

// askPace is after how long a question is sent again, and given up.
type askPace struct{ again, giveUp time.Duration }

// add has a request wait for the word on k. It reports whether it may.
func (a *asks[K]) add(k K, w *pending) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	q := a.open[k]
	if q == nil {
		if a.open == nil {
			a.open, a.numbered = map[K]*asking[K]{}, map[uint64]*asking[K]{}
		}
		a.last++
		q = &asking[K]{key: k, number: a.last, first: w}
		a.open[k], a.numbered[q.number] = q, q
		a.order = append(a.order, q)
	}
	q.waiting = append(q.waiting, w)
	return true
}

// due returns the questions that shall be sent now, and who waited for those that are
// given up. Without sweep, only those that were never sent are looked at.
func (a *asks[K]) due(now time.Time, sweep bool, pace askPace, reachable func(K) bool) (send []asking[K], lost []*pending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := a.sent
	if sweep {
		from = 0
	}
	keep := a.order[:from]
	for _, q := range a.order[from:] {
		switch {
		case q.waiting == nil:
			continue
		case !reachable(q.key) || !q.since.IsZero() && now.Sub(q.since) >= pace.giveUp:
			lost = append(lost, a.closeLocked(q)...)
			continue
		case q.since.IsZero():
			q.since, q.sent = now, now
			send = append(send, *q)
		case now.Sub(q.sent) >= pace.again:
			q.sent = now
			send = append(send, *q)
		}
		keep = append(keep, q)
	}
	clear(a.order[len(keep):])
	a.order, a.sent = keep, len(keep)
	return send, lost
}

// replied returns who waited for a reply; nobody if it is not its sender's to give.
func (a *asks[K]) replied(number uint64, by func(K) bool) []*pending {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.numbered[number]
	if q == nil || !by(q.key) {
		return nil
	}
	return a.closeLocked(q)
}

func (a *asks[K]) closeLocked(q *asking[K]) []*pending {
	waiting := q.waiting
	for _, w := range waiting {
		w.number, w.asked = q.number, q.since
	}
	q.waiting = nil
	delete(a.open, q.key)
	delete(a.numbered, q.number)
	return waiting
}

// close returns all who wait. From then on nobody may.
func (a *asks[K]) close() (all []*pending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, q := range a.order {
		all = append(all, a.closeLocked(q)...)
	}
	a.order, a.sent = nil, 0
	return all
}
