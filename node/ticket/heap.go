package ticket

// timer says that key wants to be looked at when the clock reaches at.
type timer[K any] struct {
	at  int64
	key K
}

// timers is a binary heap of timers, earliest first. Its owner keeps the truth
// about each key; a timer that turns out to be early or stale is put back or
// dropped when it fires. So moving a deadline costs nothing.
type timers[K any] []timer[K]

func (h *timers[K]) push(at int64, key K) {
	*h = append(*h, timer[K]{at, key})
	q := *h
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if q[parent].at <= q[i].at {
			return
		}
		q[parent], q[i] = q[i], q[parent]
		i = parent
	}
}

// pop removes the earliest timer if it is due at now.
func (h *timers[K]) pop(now int64) (timer[K], bool) {
	q := *h
	if len(q) == 0 || q[0].at > now {
		return timer[K]{}, false
	}
	first := q[0]
	last := len(q) - 1
	q[0] = q[last]
	q[last] = timer[K]{}
	q = q[:last]
	*h = q
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q); child++ {
			if q[child].at < q[least].at {
				least = child
			}
		}
		if least == i {
			return first, true
		}
		q[least], q[i] = q[i], q[least]
		i = least
	}
}
