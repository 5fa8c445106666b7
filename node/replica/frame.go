package replica

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ropeline/ropeline/crdt"
)

// frameVersion is the first byte of every message.
const frameVersion = 4

type frameType byte

const (
	push   frameType = iota + 1 // news, and acknowledgements of news
	pull                        // digests: send me what I lack
	answer                      // what the sender of a pull lacked
	tell                        // what the sender wrote: say when it is on your disk
	survey                      // say what is on your disk
	kept                        // what is on the sender's disk
)

func (t frameType) String() string {
	switch t {
	case push:
		return "push"
	case pull:
		return "pull"
	case answer:
		return "answer"
	case tell:
		return "tell"
	case survey:
		return "survey"
	case kept:
		return "kept"
	}
	return fmt.Sprintf("type %d", byte(t))
}

const (
	flagReady byte = 1 << iota // the sender holds its site's state
	flagFill                   // of a pull: answer even if there is nothing
	flagMore                   // of an answer: not all did fit
	flagEcho                   // of a pull: do not pull back
	flagWhole                  // lww is Whole, for the start of the receiver that to names
)

// frame is one message. In a push the digests acknowledge and name only what
// was received lately; in a pull they are complete. Its encoding is four bytes, of which the last has a bit for each
// of the eight parts that says something, two numbers, and those parts, each behind its length.
type frame struct {
	kind  frameType
	flags byte
	to    uint64 // of answers and what is whole: the start of the receiver that said what it has
	round uint64 // of a pull: its number among those to the receiver since the sender started; of an answer: that of the pull

	haveRows crdt.RowDigest
	haveSums crdt.SummaryDigest
	haveLWW  crdt.LWWDigest
	haveKept crdt.LWWDigest // on disk: of the sender; in a tell, what the receiver is to have there
	gotLWW   crdt.LWWDigest // of a pull: what the receiver has told beyond haveLWW; see transfer
	rows     crdt.RowDelta
	sums     crdt.SummaryDelta
	lww      crdt.LWWDelta

	encoded [8][]byte // of parts, as far as known
}

// Parts of a frame that are encoded before the others.
const (
	rowsPart = 5
	sumsPart = 6
)

// keep encodes a part that does not change any more, and returns its size.
func (f *frame) keep(i int, empty bool, append func([]byte) ([]byte, error)) int {
	b, err := append(nil)
	if err != nil {
		panic("replica: " + err.Error())
	}
	if !empty {
		f.encoded[i] = b
	}
	return len(b)
}

var errFrame = errors.New("malformed message")

// empty reports whether the frame says nothing.
func (f *frame) empty() bool {
	return len(f.haveRows)+len(f.haveSums)+len(f.haveLWW)+len(f.haveKept) == 0 && f.rows.Empty() && f.sums.Empty() && f.lww.Empty()
}

// encode panics when a part does not encode: all parts are our own.
func (f *frame) encode() []byte {
	all := &f.encoded
	encode(&all[0], len(f.haveRows) == 0, f.haveRows.AppendBinary)
	encode(&all[1], len(f.haveSums) == 0, f.haveSums.AppendBinary)
	encode(&all[2], len(f.haveLWW) == 0, f.haveLWW.AppendBinary)
	encode(&all[3], len(f.haveKept) == 0, f.haveKept.AppendBinary)
	encode(&all[4], len(f.gotLWW) == 0, f.gotLWW.AppendBinary)
	encode(&all[rowsPart], f.rows.Empty(), f.rows.AppendBinary)
	encode(&all[sumsPart], f.sums.Empty(), f.sums.AppendBinary)
	encode(&all[7], f.lww.Empty(), f.lww.AppendBinary)
	size, says := overhead, byte(0)
	for i, body := range all {
		if size += len(body); len(body) > 0 {
			says |= 1 << i
		}
	}
	dst := append(make([]byte, 0, size), frameVersion, byte(f.kind), f.flags, says)
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, f.to), f.round)
	for _, body := range all {
		if len(body) > 0 {
			dst = appendPart(dst, body)
		}
	}
	return dst
}

// encode encodes one part, unless that was done before.
func encode(body *[]byte, empty bool, append func([]byte) ([]byte, error)) {
	if empty || *body != nil {
		return
	}
	var err error
	if *body, err = append(nil); err != nil {
		panic("replica: " + err.Error())
	}
}

func appendPart(dst, body []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(body))), body...)
}

// cutPart returns the first part of b and the rest.
func cutPart(b []byte) (body, rest []byte, err error) {
	n, used := binary.Uvarint(b)
	if used <= 0 || n > uint64(len(b)-used) {
		return nil, nil, fmt.Errorf("part of %d in %d bytes: %w", n, len(b), errFrame)
	}
	return b[used : used+int(n)], b[used+int(n):], nil
}

// decodeFrame reads what encode wrote, or finds nothing at all.
func decodeFrame(data []byte, limit int) (*frame, error) {
	if len(data) < 4 || len(data) > limit {
		return nil, fmt.Errorf("%d bytes, want 4 to %d: %w", len(data), limit, errFrame)
	}
	if data[0] != frameVersion {
		return nil, fmt.Errorf("version %d, want %d: %w", data[0], frameVersion, errFrame)
	}
	f, says := &frame{kind: frameType(data[1]), flags: data[2]}, data[3]
	if f.kind < push || f.kind > kept {
		return nil, fmt.Errorf("%v: %w", f.kind, errFrame)
	}
	rest := data[4:]
	for _, number := range []*uint64{&f.to, &f.round} {
		n, used := binary.Uvarint(rest)
		if used <= 0 {
			return nil, fmt.Errorf("no number: %w", errFrame)
		}
		*number, rest = n, rest[used:]
	}
	for i, decode := range []func([]byte) error{
		func(b []byte) (err error) { f.haveRows, err = crdt.DecodeRowDigest(b); return err },
		func(b []byte) (err error) { f.haveSums, err = crdt.DecodeSummaryDigest(b); return err },
		func(b []byte) (err error) { f.haveLWW, err = crdt.DecodeLWWDigest(b); return err },
		func(b []byte) (err error) { f.haveKept, err = crdt.DecodeLWWDigest(b); return err },
		func(b []byte) (err error) { f.gotLWW, err = crdt.DecodeLWWDigest(b); return err },
		func(b []byte) (err error) { f.rows, err = crdt.DecodeRowDelta(b); return err },
		func(b []byte) (err error) { f.sums, err = crdt.DecodeSummaryDelta(b); return err },
		func(b []byte) (err error) { f.lww, err = crdt.DecodeLWWDelta(b); return err },
	} {
		if says&(1<<i) == 0 {
			continue
		}
		var body []byte
		var err error
		if body, rest, err = cutPart(rest); err != nil {
			return nil, err
		}
		if err := decode(body); err != nil {
			return nil, fmt.Errorf("%v: %w", f.kind, err)
		}
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes too many: %w", len(rest), errFrame)
	}
	return f, nil
}
