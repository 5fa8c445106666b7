package record

import (
	"fmt"
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
