package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// Writer appends events to a file.
type Writer struct{ f *os.File }

// Create makes a file for one start of one node. It must not exist: no start
// may hide what an earlier one has granted.
func Create(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return &Writer{f}, nil
}

// Add hands e to the kernel. It panics if that fails: a node whose grants are
// not all on record must grant nothing more.
func (w *Writer) Add(e Event) {
	var buf [Size]byte
	if _, err := w.f.Write(e.Append(buf[:0])); err != nil {
		panic("record: " + err.Error())
	}
}

// Reader reads the events of one file in the order in which they were written.
type Reader struct {
	f   *os.File
	r   *bufio.Reader
	buf [Size]byte
}

// Open opens a file of a [Writer].
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return &Reader{f: f, r: bufio.NewReaderSize(f, 1024*Size)}, nil
}

// Next returns the next event, or io.EOF after the last whole one.
func (r *Reader) Next() (Event, error) {
	_, err := io.ReadFull(r.r, r.buf[:])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF // being written, or broken off: no answer can have left
	}
	if err != nil {
		return Event{}, err
	}
	return Decode(r.buf[:])
}

// Close closes the file.
func (r *Reader) Close() error { return r.f.Close() }
