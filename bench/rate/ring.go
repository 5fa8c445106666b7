package rate

// ring is a queue of connections that are free. The one that has been free longest is used next, so that all
// of them are used in turn, as those of a crowd are.
type ring struct {
	at   []int32
	head int // the first
	n    int // how many there are
}

func newRing(most int) ring { return ring{at: make([]int32, most)} }

func (r *ring) len() int { return r.n }

func (r *ring) push(i int32) {
	at := r.head + r.n
	if at >= len(r.at) {
		at -= len(r.at)
	}
	r.at[at] = i
	r.n++
}

func (r *ring) pop() int32 {
	i := r.at[r.head]
	if r.head++; r.head == len(r.at) {
		r.head = 0
	}
	r.n--
	return i
}
