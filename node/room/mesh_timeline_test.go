package room

import "time"

// timeline is what will happen, in order of time; what happens at the same time
// is in the order in which it was added.
type timeline struct {
	heap []happening
	seq  uint64
}

type happening struct {
	at  time.Time
	seq uint64
	f   func()
}

func (h happening) before(o happening) bool {
	if h.at.Equal(o.at) {
		return h.seq < o.seq
	}
	return h.at.Before(o.at)
}

func (t *timeline) add(at time.Time, f func()) {
	t.seq++
	t.heap = append(t.heap, happening{at, t.seq, f})
	i := len(t.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !t.heap[i].before(t.heap[up]) {
			break
		}
		t.heap[i], t.heap[up] = t.heap[up], t.heap[i]
		i = up
	}
}

func (t *timeline) len() int { return len(t.heap) }

// next takes out what happens first, if that is before end.
func (t *timeline) next(end time.Time) (at time.Time, f func()) {
	if len(t.heap) == 0 || !t.heap[0].at.Before(end) {
		return time.Time{}, nil
	}
	first := t.heap[0]
	last := len(t.heap) - 1
	t.heap[0] = t.heap[last]
	t.heap[last] = happening{}
	t.heap = t.heap[:last]
	for i := 0; ; {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < last && t.heap[c].before(t.heap[least]) {
				least = c
			}
		}
		if least == i {
			break
		}
		t.heap[i], t.heap[least] = t.heap[least], t.heap[i]
		i = least
	}
	return first.at, first.f
}
