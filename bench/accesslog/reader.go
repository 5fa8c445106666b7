// Package accesslog reads the access logs of web servers, in common or combined
// format, plain or compressed with gzip.
//
// A [Reader] reads one entry at a time and holds no more than a line of the
// source, however long the source is. It may be used by one goroutine at a time.
package accesslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// MaxLine bounds a line in bytes, so that a file that is no log at all cannot
// fill the memory. Longer lines are malformed.
const MaxLine = 64 << 10

// Reader reads entries off a source.
type Reader struct {
	src  *bufio.Reader
	line int
}

// NewReader returns a reader of r, which is decompressed if it begins like gzip.
func NewReader(r io.Reader) (*Reader, error) {
	src, err := Decompress(r)
	if err != nil {
		return nil, err
	}
	return &Reader{src: src}, nil
}

// Decompress returns what r holds, without the gzip around it if there is some.
// Its buffer holds MaxLine bytes.
func Decompress(r io.Reader) (*bufio.Reader, error) {
	src := bufio.NewReaderSize(r, MaxLine)
	if magic, err := src.Peek(2); err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return src, nil // a source that fails does so again when it is read
	}
	zr, err := gzip.NewReader(src)
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return bufio.NewReaderSize(zr, MaxLine), nil
}

// Next returns the next entry; empty lines are passed over. At the end it gives
// io.EOF. A [*Malformed] says that a line is no request, and the next call goes
// on behind it; after any other error the source is of no more use.
func (r *Reader) Next() (e Entry, err error) {
	for line := []byte(nil); len(line) == 0 && err == nil; {
		r.line++
		if line, err = readLine(r.src); len(line) > 0 {
			e, err = Parse(string(line))
		}
	}
	m, malformed := errors.AsType[*Malformed](err)
	switch {
	case malformed:
		m.Line = r.line
	case err != nil && !errors.Is(err, io.EOF):
		err = fmt.Errorf("line %d: %w", r.line, err)
	}
	return e, err
}

// readLine returns the next line without its end. The line is valid until the
// next call. A line that is too long is skipped whole and is malformed; the end
// of the source gives io.EOF.
func readLine(src *bufio.Reader) ([]byte, error) {
	line, err := src.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = src.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return nil, &Malformed{Column: MaxLine, Reason: fmt.Errorf("longer than %d bytes", MaxLine)}
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}
