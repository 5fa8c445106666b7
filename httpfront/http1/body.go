package http1

import (
	"bufio"
	"io"
)

// Body reads what follows a head: so many bytes, chunks, or all until the connection ends. The zero
// value has nothing to read.
type Body struct {
	chunks chunkReader // if it is in chunks
	left   int64       // bytes; LengthChunked, LengthOpen
	eof    bool
}

// Begin has b read a body of that length from br. Of origins, more is put up with.
func (b *Body) Begin(br *bufio.Reader, length int64, ofOrigin bool) {
	if length == lengthNone {
		length = 0
	}
	*b = Body{left: length, chunks: chunkReader{br: br, lenient: ofOrigin}}
}

// From has the rest of b be read from another reader.
func (b *Body) From(br *bufio.Reader) { b.chunks.br = br }

// Read reads some of the body. Its end may come with its last bytes.
func (b *Body) Read(p []byte) (n int, err error) {
	br := b.chunks.br
	switch {
	case b.eof || b.left == 0:
		return 0, io.EOF
	case b.left == LengthChunked:
		n, err = b.chunks.Read(p)
	case b.left > 0:
		n, err = br.Read(p[:min(int64(len(p)), b.left)])
		switch b.left -= int64(n); {
		case b.left > 0:
			err = noEOF(err)
		case err == nil:
			err = io.EOF
		}
	default:
		n, err = br.Read(p)
	}
	b.eof = err == io.EOF
	return n, err
}

// Ready reports whether some of the body, or its end, can be read without waiting for it.
func (b *Body) Ready() bool {
	if b.left == LengthChunked {
		return b.chunks.ready()
	}
	return b.chunks.br.Buffered() > 0
}

// Unread reports whether some of the body is still to be read.
func (b *Body) Unread() bool { return b.left != 0 && !b.eof }

// Trailer returns the fields behind the last chunk, once the end was read.
func (b *Body) Trailer() []Field { return b.chunks.trailer }
