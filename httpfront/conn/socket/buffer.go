package socket

import "sync"

// Buffer is what Receive returns.
type Buffer struct {
	bytes   [4 << 10]byte
	from, n int
}

// Take moves what is in b to p, and reports whether something is left.
func (b *Buffer) Take(p []byte) (n int, more bool) {
	n = copy(p, b.bytes[b.from:b.n])
	b.from += n
	return n, b.from < b.n
}

// Holding returns a buffer with p, nil if there is no room for that in one.
func Holding(p []byte) *Buffer {
	b := received.Get().(*Buffer)
	if b.from, b.n = 0, copy(b.bytes[:], p); b.n < len(p) {
		Free(b)
		return nil
	}
	return b
}

var received = sync.Pool{New: func() any { return new(Buffer) }}

// Free gives b back; nil is none.
func Free(b *Buffer) {
	if b != nil {
		received.Put(b)
	}
}
