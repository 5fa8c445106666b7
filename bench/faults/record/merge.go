package record

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Source is one file of a merge.
type Source struct {
	Node string // name of the node that wrote it
	Path string
}

// slack is how far the events of one file may be out of order: requests are
// decided beside each other, and each writes its own event when it is done. A
// request that is held up for longer than that (the process was stopped between
// reading the clock and writing) is passed on late, and counted.
const slack = 2 * time.Second

// Merge is what several nodes have written, in the order of true time.
type Merge struct {
	sources []Source
	// Late counts events that came out after one with a later time. Checkers
	// that need the order may be wrong about so many.
	Late int
}

// NewMerge returns a merge of files.
func NewMerge(sources []Source) *Merge { return &Merge{sources: sources} }

// All yields every event, with the name of the node that wrote it. It stops at
// the first error, which it yields.
func (m *Merge) All() iter.Seq2[Located, error] {
	return func(yield func(Located, error) bool) {
		m.Late = 0
		var h streams
		defer func() {
			for _, s := range h {
				_ = s.r.Close() // only read from
			}
		}()
		for _, src := range m.sources {
			r, err := Open(src.Path)
			if err != nil {
				yield(Located{}, err)
				return
			}
			s := &stream{node: src.Node, path: src.Path, r: r}
			if err := s.fill(); err != nil {
				_ = r.Close()
				yield(Located{}, err)
				return
			}
			h = append(h, s)
		}
		h = drop(h)
		heap.Init(&h)
		var last int64
		for len(h) > 0 {
			s := h[0]
			e := heap.Pop(&s.ahead).(Event)
			if e.At < last {
				m.Late++
			}
			last = max(last, e.At)
			if !yield(Located{s.node, e}, nil) {
				return
			}
			if err := s.fill(); err != nil {
				yield(Located{}, err)
				return
			}
			if len(s.ahead) == 0 {
				_ = s.r.Close()
				heap.Pop(&h)
				continue
			}
			heap.Fix(&h, 0)
		}
	}
}

// Located is an event and where it happened.
type Located struct {
	Node string
	Event
}

// drop closes and leaves out the empty ones.
func drop(h streams) streams {
	kept := h[:0]
	for _, s := range h {
		if len(s.ahead) == 0 {
			_ = s.r.Close()
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// stream is one file with a piece of it in order.
type stream struct {
	node, path string
	r          *Reader
	ahead      events
	newest     int64
	done       bool
}

// fill reads until the earliest event cannot be preceded by one to come.
func (s *stream) fill() error {
	for !s.done && (len(s.ahead) == 0 || s.newest-s.ahead[0].At < int64(slack)) {
		e, err := s.r.Next()
		if errors.Is(err, io.EOF) {
			s.done = true
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		s.newest = max(s.newest, e.At)
		heap.Push(&s.ahead, e)
	}
	return nil
}

type streams []*stream

func (h streams) Len() int           { return len(h) }
func (h streams) Less(i, j int) bool { return h[i].ahead[0].At < h[j].ahead[0].At }
func (h streams) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *streams) Push(x any)        { *h = append(*h, x.(*stream)) }
func (h *streams) Pop() any {
	s := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return s
}

// events is a heap by time.
type events []Event

func (h events) Len() int           { return len(h) }
func (h events) Less(i, j int) bool { return h[i].At < h[j].At }
func (h events) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)        { *h = append(*h, x.(Event)) }
func (h *events) Pop() any {
	e := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return e
}
