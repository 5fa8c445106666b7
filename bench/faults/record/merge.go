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
// reading the clock and writing) is passed on late.
const slack = 2 * time.Second

// Located is an event and where it happened.
type Located struct {
	Node string
	Event
}

// Merge yields every event of several files, in the order of true time, with the name of the node that wrote it. It
// stops at the first error, which it yields.
func Merge(sources []Source) iter.Seq2[Located, error] {
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
		for _, src := range sources {
			f, err := os.Open(src.Path)
			if err == nil {
				err = place(&stream{node: src.Node, file: f, read: bufio.NewReaderSize(f, 1024*Size)})
			}
			if err != nil {
				yield(Located{}, fmt.Errorf("record: %w", err))
				return
			}
		}
		for len(streams) > 0 {
			s := streams[0]
			if !yield(Located{s.node, s.ahead[0]}, nil) {
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
