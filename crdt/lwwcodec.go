package crdt

import (
	"maps"
	"math"
	"slices"
)

const (
	minLWWMark  = idSize + 1
	minLWWPiece = idSize + 5
	minWrite    = 3
	lwwHeadSize = idSize + 9 + 9 + 9 + 9 + arraySize
)

// AppendBinary appends the encoding of d to dst.
func (d LWWDigest) AppendBinary(dst []byte) ([]byte, error) {
	w := newWriter(dst)
	w.known(d)
	return w.result()
}

func (w *writer) known(d LWWDigest) {
	w.array(len(d))
	for _, writer := range slices.SortedFunc(maps.Keys(d), NodeID.Compare) {
		w.bytes(writer[:])
		w.uint(d[writer])
	}
}

func (r *reader) known() LWWDigest {
	n := r.array(minLWWMark)
	d := make(LWWDigest, n)
	for range n {
		var writer NodeID
		r.id((*[16]byte)(&writer))
		d[writer] = r.uint(math.MaxInt64)
	}
	return d
}

// DecodeLWWDigest reads what LWWDigest.AppendBinary wrote.
func DecodeLWWDigest(data []byte) (LWWDigest, error) {
	r := newReader(data)
	d := r.known()
	if err := r.end(); err != nil {
		return nil, err
	}
	return d, nil
}

// AppendBinary appends the encoding of d to dst.
func (d LWWDelta) AppendBinary(dst []byte) ([]byte, error) {
	w := newWriter(dst)
	w.array(len(d.Pieces))
	for _, p := range d.Pieces {
		w.bytes(p.Writer[:])
		w.uint(p.From)
		w.uint(p.To - p.From)
		w.uint(p.Forgot)
		w.uint(min(p.Hides, 1) * (1 + p.To - p.Hides))
		w.array(len(p.Writes))
		for _, wr := range p.Writes {
			wr.encode(w)
		}
	}
	return w.result()
}

// DecodeLWWDelta reads what LWWDelta.AppendBinary wrote. Whether the delta is
// possible is found out when it is applied.
func DecodeLWWDelta(data []byte) (LWWDelta, error) {
	r := newReader(data)
	d := LWWDelta{Pieces: make([]LWWPiece, 0, r.array(minLWWPiece))}
	for range cap(d.Pieces) {
		var p LWWPiece
		r.id((*[16]byte)(&p.Writer))
		p.From = r.uint(math.MaxInt64)
		p.To = p.From + r.uint(math.MaxInt64-p.From)
		p.Forgot = r.uint(math.MaxInt64)
		if behind := r.uint(p.To); behind > 0 {
			p.Hides = p.To + 1 - behind
		}
		if n := r.array(minWrite); n > 0 {
			p.Writes = make([]Write, n)
		}
		for i := range p.Writes {
			p.Writes[i] = decodeWrite(r)
		}
		d.Pieces = append(d.Pieces, p)
	}
	if err := r.end(); err != nil {
		return LWWDelta{}, err
	}
	return d, nil
}

// A deletion has no value, and an empty value is one: they differ by an array
// of no or of one string. In front of it is the first stamp, if there is one.
func (wr Write) encode(w *writer) {
	w.text(wr.Key)
	w.uint(wr.At)
	n := 0
	if wr.Value != nil {
		n++
	}
	if !wr.First.IsZero() {
		n += 2
	}
	w.array(n)
	if !wr.First.IsZero() {
		w.uint(wr.First.packed())
		w.bytes(wr.First.Node[:])
	}
	if wr.Value != nil {
		w.bytes(wr.Value)
	}
}

func (wr Write) size() int {
	n := bytesSize(len(wr.Key)) + 9 + 1 + bytesSize(len(wr.Value))
	if !wr.First.IsZero() {
		n += 9 + idSize
	}
	return n
}

func decodeWrite(r *reader) (wr Write) {
	wr.Key = r.text(maxKey)
	wr.At = r.uint(math.MaxInt64)
	n := r.array(1)
	if n > 3 {
		r.fail("%d values", n)
	}
	if n >= 2 {
		at := r.uint(math.MaxInt64)
		r.id((*[16]byte)(&wr.First.Node))
		wr.First = unpack(at, wr.First.Node)
	}
	if n%2 == 1 {
		wr.Value = r.bytes(MaxValue)
	}
	return wr
}
