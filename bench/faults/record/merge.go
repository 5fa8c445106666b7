package record

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
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

// Located is an event and where it happened.
type Located struct {
	Node string
	Event
}

// All yields every event, with the name of the node that wrote it. It stops at
// the first error, which it yields.
func (m *Merge) All() iter.Seq2[Located, error] {
	return func(yield func(Located, error) bool) {
		var streams []*stream // by the time of the next event of each
		defer func() {
			for _, s := range streams {
				_ = s.file.Close() // only read from
			}
		}()
		// place has a stream read on, and puts it where it belongs.
		place := func(s *stream) error {
			if err := s.fill(); err != nil || len(s.ahead) == 0 {
				return errors.Join(err, s.file.Close())
			}
			i, _ := slices.BinarySearchFunc(streams, s, func(a, b *stream) int { return cmp.Compare(a.ahead[0].At, b.ahead[0].At) })
			streams = slices.Insert(streams, i, s)
			return nil
		}
		for _, src := range m.sources {
			f, err := os.Open(src.Path)
			if err == nil {
				err = place(&stream{node: src.Node, file: f, read: bufio.NewReaderSize(f, 1024*Size)})
			}
			if err != nil {
				yield(Located{}, fmt.Errorf("record: %w", err))
				return
			}
		}
		m.Late = 0
		for last := int64(0); len(streams) > 0; {
			s := streams[0]
			e := s.ahead[0]
			if e.At < last {
				m.Late++
			}
			last = max(last, e.At)
			if !yield(Located{s.node, e}, nil) {
				return
			}
			s.ahead = s.ahead[1:]
			streams = streams[1:]
			if err := place(s); err != nil {
				yield(Located{}, err)
				return
			}
		}
	}
}

// stream is one file with a piece of it in order.
type stream struct {
	node   string
	file   *os.File
	read   *bufio.Reader
	ahead  []Event
	newest int64
	done   bool
}

// fill reads until the earliest event cannot be preceded by one to come.
func (s *stream) fill() error {
	for !s.done && (len(s.ahead) == 0 || s.newest-s.ahead[0].At < int64(slack)) {
		var buf [Size]byte
		_, err := io.ReadFull(s.read, buf[:])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			s.done = true // or the last is being written, or broken off: no answer can have left
			break
		}
		e, damaged := Decode(buf[:])
		if err = cmp.Or(err, damaged); err != nil {
			return fmt.Errorf("%s: %w", s.file.Name(), err)
		}
		s.newest = max(s.newest, e.At)
		// Nearly in order, so that few have to make room.
		i, _ := slices.BinarySearchFunc(s.ahead, e, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
		s.ahead = slices.Insert(s.ahead, i, e)
	}
	return nil
}
