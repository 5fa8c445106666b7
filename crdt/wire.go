package crdt

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/vmihailenco/msgpack/v5"
)

// Encoded values are msgpack: a version, then a flat row of numbers, strings
// and array headers in a fixed order. Numbers take the fewest bytes they fit
// into, so what is written often is written as a small difference.
const codecVersion = 2

// Older encodings are read as well: a node finds its own on disk.
const (
	codecFirst = 1
	codecHeld  = 2 // the first in which summaries speak of rights
)

// MaxState is the size of the largest encoding that is decoded at all.
const MaxState = 1 << 20

const (
	maxSite = 128     // bytes of a site's name
	maxTick = 1 << 40 // far enough for seconds, and times ten still in range
	maxTime = 1 << 46 // Unix milliseconds
)

// ErrMalformed is wrapped by every error of decoding.
var ErrMalformed = errors.New("malformed encoding")

func newBudget(limit int) *budget {
	if limit <= 0 {
		limit = math.MaxInt
	}
	// The version and the number of pieces are spent beforehand.
	return &budget{max(0, limit-uintSize(codecVersion)-arraySize)}
}

// Upper bounds of encoded sizes, for cutting messages without encoding twice.
const (
	arraySize = 5
	idSize    = 2 + 16
)

func uintSize(v uint64) int {
	switch {
	case v <= math.MaxInt8:
		return 1
	case v <= math.MaxUint8:
		return 2
	case v <= math.MaxUint16:
		return 3
	case v <= math.MaxUint32:
		return 5
	}
	return 9
}

func intSize(v int64) int {
	switch {
	case v >= 0:
		return uintSize(uint64(v))
	case v >= -32:
		return 1
	case v >= math.MinInt8:
		return 2
	case v >= math.MinInt16:
		return 3
	case v >= math.MinInt32:
		return 5
	}
	return 9
}

func bytesSize(n int) int { return 5 + n }

// writer appends to a byte slice. The first error sticks.
type writer struct {
	buf *bytes.Buffer
	enc *msgpack.Encoder
	err error
}

func newWriter(dst []byte) *writer {
	w := &writer{buf: bytes.NewBuffer(dst)}
	w.enc = msgpack.GetEncoder()
	w.enc.Reset(w.buf)
	w.enc.UseCompactInts(true)
	w.uint(codecVersion)
	return w
}

func (w *writer) keep(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) uint(v uint64)  { w.keep(w.enc.EncodeUint(v)) }
func (w *writer) int(v int64)    { w.keep(w.enc.EncodeInt(v)) }
func (w *writer) array(n int)    { w.keep(w.enc.EncodeArrayLen(n)) }
func (w *writer) text(s string)  { w.keep(w.enc.EncodeString(s)) }
func (w *writer) bytes(b []byte) { w.keep(w.enc.EncodeBytes(b)) }
func (w *writer) owner(i Incarnation) {
	w.bytes(i.Node[:])
	w.uint(i.Boot)
}

// result ends the writer.
func (w *writer) result() ([]byte, error) {
	msgpack.PutEncoder(w.enc)
	w.enc = nil
	if w.err != nil {
		return nil, fmt.Errorf("encode: %w", w.err)
	}
	return w.buf.Bytes(), nil
}

// reader takes an encoding apart. Every length is held against what is left of
// the input before anything is allocated. The first error sticks; after it all
// results are zero.
type reader struct {
	src *bytes.Reader
	dec *msgpack.Decoder
	err error

	coded uint64 // the version
}

func newReader(data []byte) *reader { return newReaderOf(data, MaxState) }

func newReaderOf(data []byte, limit int) *reader {
	r := &reader{src: bytes.NewReader(data)}
	if len(data) > limit {
		r.fail("%d bytes, more than %d", len(data), limit)
		return r
	}
	r.dec = msgpack.NewDecoder(r.src)
	r.coded = r.uint(math.MaxUint8)
	if r.err == nil && (r.coded < codecFirst || r.coded > codecVersion) {
		r.fail("version %d, want %d to %d", r.coded, codecFirst, codecVersion)
	}
	return r
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
}

// uint reads a number of at most limit.
func (r *reader) uint(limit uint64) uint64 {
	if r.err != nil {
		return 0
	}
	v, err := r.dec.DecodeUint64()
	if err != nil {
		r.fail("number: %v", err)
		return 0
	}
	if v > limit {
		r.fail("number %d above %d", v, limit)
		return 0
	}
	return v
}

// int reads a number between −limit and limit.
func (r *reader) int(limit int64) int64 {
	if r.err != nil {
		return 0
	}
	v, err := r.dec.DecodeInt64()
	if err != nil {
		r.fail("number: %v", err)
		return 0
	}
	if v < -limit || v > limit {
		r.fail("number %d beyond ±%d", v, limit)
		return 0
	}
	return v
}

// array reads the number of elements that follow, each of at least size bytes.
func (r *reader) array(size int) int {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeArrayLen()
	if err != nil {
		r.fail("array: %v", err)
		return 0
	}
	if n < 0 || n > r.src.Len()/size {
		r.fail("array of %d in %d bytes", n, r.src.Len())
		return 0
	}
	return n
}

// length reads the length of a string of at most limit bytes.
func (r *reader) length(limit int) int {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeBytesLen()
	if err != nil {
		r.fail("length: %v", err)
		return 0
	}
	if n < 0 || n > limit || n > r.src.Len() {
		r.fail("string of %d bytes, limit %d, left %d", n, limit, r.src.Len())
		return 0
	}
	return n
}

func (r *reader) full(dst []byte) {
	if r.err != nil {
		return
	}
	if err := r.dec.ReadFull(dst); err != nil {
		r.fail("string: %v", err)
	}
}

func (r *reader) bytes(limit int) []byte {
	n := r.length(limit)
	if r.err != nil {
		return nil
	}
	b := make([]byte, n)
	r.full(b)
	return b
}

func (r *reader) text(limit int) string { return string(r.bytes(limit)) }

func (r *reader) id(dst *[16]byte) {
	if n := r.length(len(dst)); r.err == nil && n != len(dst) {
		r.fail("id of %d bytes", n)
	}
	r.full(dst[:])
}

func (r *reader) owner() (i Incarnation) {
	r.id((*[16]byte)(&i.Node))
	i.Boot = r.uint(math.MaxUint64)
	return i
}

// more reports whether there are bytes left.
func (r *reader) more() bool { return r.err == nil && r.src.Len() > 0 }

// end returns the error, and makes one of bytes that nobody asked for.
func (r *reader) end() error {
	if r.err == nil && r.src.Len() > 0 {
		r.fail("%d bytes too many", r.src.Len())
	}
	return r.err
}
