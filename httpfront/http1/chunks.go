package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
)

// Chunks are read by rules that leave one reading. A lenient reader would take more behind the
// last chunk than what others take for a trailer, so that this may be a request to it; and who
// takes the end of the connection between two chunks for the end of the body has an origin take
// half an upload for a whole one.

const (
	chunkLineMax   = 512 // bytes of a chunk's size with its extensions
	chunkDigitsMax = 15  // of its size, leading zeros included
	trailersMax    = 16 << 10
)

var (
	errChunk       = errors.New("a chunk is not in order")
	errTrailer     = errors.New("the trailer is not in order")
	ErrTrailerLong = errors.New("the trailer is too long")
)

// chunkReader reads a body in chunks by rules that leave one reading: RFC 9112,
// 7.1, without white space that was never meant to be there. Extensions are
// dropped. It reads nothing beyond the body.
type chunkReader struct {
	br      *bufio.Reader
	left    int64 // of the chunk
	inside  bool  // whether a chunk is under way, up to the line end behind it
	lenient bool  // for origins: spaces behind a size, and lines of a trailer that end in LF
	trailer []Field
	err     error // for all reads to come; io.EOF after the whole body and its trailer
}

// Read reads some of the body.
func (c *chunkReader) Read(p []byte) (int, error) {
	for c.err == nil && c.left == 0 {
		c.err = c.next()
	}
	if c.err != nil || len(p) == 0 {
		return 0, c.err
	}
	n, err := c.br.Read(p[:min(int64(len(p)), c.left)])
	if c.left -= int64(n); err != nil {
		c.err = noEOF(err)
	}
	return n, c.err
}

// ready reports whether Read goes on for some bytes without waiting.
func (c *chunkReader) ready() bool {
	b, _ := c.br.Peek(c.br.Buffered())
	if c.left > 0 || c.err != nil {
		return len(b) > 0 || c.err != nil
	}
	if c.inside {
		b = b[min(len(b), len("\r\n")):]
	}
	line := bytes.IndexByte(b, '\n')
	if line >= 0 && bytes.HasPrefix(b, []byte("0")) { // perhaps the last
		rest := b[line+1:]
		return bytes.HasPrefix(rest, []byte("\r\n")) || bytes.HasPrefix(rest, []byte("\n")) || headSize(rest) > 0
	}
	return line >= 0 && line+1 < len(b)
}

// next goes to the data of the next chunk, or behind the trailer.
func (c *chunkReader) next() error {
	if c.inside {
		var end [2]byte
		if _, err := io.ReadFull(c.br, end[:]); err != nil {
			return noEOF(err)
		}
		if end != [2]byte{'\r', '\n'} {
			return errChunk
		}
		c.inside = false
	}
	line, err := readLine(c.br)
	switch {
	case err == bufio.ErrBufferFull, err == nil && len(line) > chunkLineMax:
		return errChunk
	case err != nil:
		return err
	}
	if c.lenient {
		line = bytes.TrimRight(line, " \t")
	}
	size, ok := parseChunkSize(line)
	if !ok {
		return errChunk
	}
	if size == 0 {
		if err := c.readTrailer(); err != nil {
			return err
		}
		return io.EOF
	}
	c.left, c.inside = size, true
	return nil
}

// readTrailer reads up to the empty line.
func (c *chunkReader) readTrailer() error {
	for left := trailersMax; ; {
		line, err := c.trailerLine()
		if left -= len(line) + 2; err == bufio.ErrBufferFull || left < 0 {
			return ErrTrailerLong
		}
		switch {
		case err != nil:
			return err
		case len(line) == 0:
			return nil
		case len(c.trailer) == fieldsMax:
			return ErrTrailerLong
		}
		f, no := parseField(bytes.Clone(line)) // the buffer is used again
		if no.Code != 0 {
			return errTrailer
		}
		c.trailer = append(c.trailer, f)
	}
}

// trailerLine returns a line of the trailer without its end.
func (c *chunkReader) trailerLine() ([]byte, error) {
	if !c.lenient {
		return readLine(c.br)
	}
	line, err := c.br.ReadSlice('\n')
	if err != nil {
		return nil, noEOF(err)
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// readLine returns a line without its CR LF, which it must end in. It is good
// until the next read.
func readLine(br *bufio.Reader) ([]byte, error) {
	line, err := br.ReadSlice('\n')
	if err != nil {
		return nil, noEOF(err)
	}
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok {
		return nil, errChunk
	}
	return line, nil
}

// parseChunkSize reads the line in front of a chunk.
func parseChunkSize(line []byte) (int64, bool) {
	digits, extension, _ := bytes.Cut(line, []byte(";"))
	if len(digits) == 0 || len(digits) > chunkDigitsMax || !isValue(extension) {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		d := unhex(c)
		if d > 15 {
			return 0, false
		}
		n = n<<4 | int64(d)
	}
	return n, true
}

// noEOF is for where a message cannot end.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ChunkHeadMax is room for the length of a chunk before its bytes.
const ChunkHeadMax = 8

// FrameChunk puts the n bytes of buf from begin on into a chunk, and returns where that is. There
// are ChunkHeadMax bytes before them, and two behind.
func FrameChunk(buf []byte, begin, n int) (from, to int) {
	var head [ChunkHeadMax]byte
	h := append(strconv.AppendInt(head[:0], int64(n), 16), "\r\n"...)
	from, to = begin-len(h), begin+n
	copy(buf[from:], h)
	return from, to + copy(buf[to:], "\r\n")
}
