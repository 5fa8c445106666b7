package relay

import "encoding/binary"

// frames follows the frames of a WebSocket (RFC 6455, section 5.2) in one direction, so that it is known where one ends. The
// zero value is before the first frame.
type frames struct {
	head   [14]byte // of the frame that is under way, as far as it has come
	have   int      // bytes of head
	body   uint64   // bytes of the frame that are still to come
	over   bool     // a close frame has begun: none may follow it
	broken bool     // what came is no WebSocket of any kind that is known
}

const (
	opClose  = 8
	headLeft = 2 // bytes of a head that every frame has
)

// boundary reports whether a frame may begin here.
func (f *frames) boundary() bool { return f.have == 0 && f.body == 0 && !f.over && !f.broken }

// next takes in bytes up to the end of a frame, and returns how many these are.
func (f *frames) next(p []byte) int {
	n := 0
	for n < len(p) && !f.broken {
		if f.body > 0 {
			part := min(f.body, uint64(len(p)-n))
			f.body -= part
			if n += int(part); f.body == 0 {
				return n
			}
			continue
		}
		f.head[f.have] = p[n]
		f.have++
		n++
		if f.have == f.size() && f.begin() {
			return n // it has no body
		}
	}
	if f.broken {
		return len(p)
	}
	return n
}

// size returns how many bytes the head has, as far as is known.
func (f *frames) size() int {
	if f.have < headLeft {
		return headLeft
	}
	n := headLeft
	switch f.head[1] & 0x7f {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if f.head[1]&0x80 != 0 {
		n += 4
	}
	return n
}

// begin understands a head that is complete, and reports whether its frame has ended with it.
func (f *frames) begin() bool {
	switch n := f.head[1] & 0x7f; n {
	case 126:
		f.body = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		f.body = binary.BigEndian.Uint64(f.head[2:])
	default:
		f.body = uint64(n)
	}
	op := f.head[0] & 0x0f
	f.over = f.over || op == opClose
	f.broken = op > 2 && op < opClose || op > 10 || f.head[0]&0x30 != 0 || f.body>>63 != 0 // no extension that is in use sets these bits
	f.have = 0
	return f.body == 0
}
