package relay

import (
	"bytes"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// frame is a frame without a mask.
func frame(op byte, body string) []byte {
	b := []byte{0x80 | op}
	switch n := len(body); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = append(b, 126, byte(n>>8), byte(n))
	default:
		b = append(b, 127, 0, 0, 0, 0, 0, byte(n>>16), byte(n>>8), byte(n))
	}
	return append(b, body...)
}

// TestFramesEnd: wherever the bytes are cut, the ends of frames are found.
func TestFramesEnd(t *testing.T) {
	var all []byte
	ends := map[int]bool{0: true}
	for _, f := range [][]byte{
		frame(1, "text"), frame(9, ""), frame(2, strings.Repeat("b", 200)), frame(2, strings.Repeat("c", 70000)),
		{0x01, 0x81, 1, 2, 3, 4, 'x'},
		{0x80, 0x80, 1, 2, 3, 4},
		{0xc1, 1, 'z'},
	} {
		all = append(all, f...)
		ends[len(all)] = true
	}
	for _, piece := range []int{1, 2, 3, 7, 1000, len(all)} {
		var f frames
		for at := 0; at < len(all); {
			p := all[at:min(at+piece, len(all))]
			n := f.next(p)
			if n == 0 || n > len(p) {
				t.Fatalf("%d of %d bytes taken", n, len(p))
			}
			if at += n; f.boundary() != ends[at] {
				t.Fatalf("in pieces of %d: after %d bytes a frame ends: %v, want %v", piece, at, f.boundary(), ends[at])
			}
		}
	}
	for what, bytes := range map[string]string{"text": "hello there", "a reserved code": "\x83\x00", "a length that is none": "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"} {
		var f frames
		if f.next([]byte(bytes)); !f.broken || f.boundary() {
			t.Errorf("%s is taken for a frame", what)
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(frame(1, "text"), 1)
	f.Fuzz(func(t *testing.T, b []byte, piece int) {
		var whole, cut frames
		for at := 0; at < len(b); {
			at += whole.next(b[at:])
		}
		for at := 0; at < len(b); {
			n := cut.next(b[at:min(len(b), at+1+(piece&0xf))])
			if n == 0 {
				t.Fatal("nothing is taken in")
			}
			at += n
		}
		if !whole.broken && (whole.boundary() != cut.boundary() || whole.body != cut.body) {
			t.Errorf("cut: %+v, whole: %+v", cut, whole)
		}
	})
}

// ended is what a client gets of pieces that an origin sends, if End comes after so many of them; and whether
// the connection was closed without a word.
func ended(t *testing.T, after int, pieces ...[]byte) (got []byte, finished bool) {
	t.Helper()
	near, far := net.Pipe()
	read := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(far)
		read <- b
	}()
	var e Ending
	e.begin(near, func() { finished = true })
	for i, p := range append(pieces, nil) {
		if i == after {
			e.End()
		}
		if _, err := e.Write(p); err != nil && !finished {
			t.Errorf("piece %d: %v", i, err)
		}
	}
	near.Close()
	return <-read, finished
}

// TestTunnelsEndBehindAFrame, with a word to the client.
func TestTunnelsEndBehindAFrame(t *testing.T) {
	one, two := frame(1, "one"), frame(2, strings.Repeat("2", 300))
	join := slices.Concat[[]byte]
	for what, c := range map[string]struct {
		after    int
		pieces   [][]byte
		want     []byte
		finished bool
	}{
		"before anything is said": {0, [][]byte{one}, goingAway, true},
		"between two frames":      {1, [][]byte{one, two}, join(one, goingAway), true},
		"in a frame":              {1, [][]byte{join(one, two[:10]), two[10:], one}, join(one, two, goingAway), true},
		"in a frame, with more":   {1, [][]byte{two[:10], join(two[10:], one)}, join(two, goingAway), true},
		"in a frame that goes on": {1, [][]byte{two[:10], two[10:20]}, two[:20], false},
		"behind a close frame":    {1, [][]byte{frame(opClose, "\x03\xe8")}, frame(opClose, "\x03\xe8"), true},
		"in what is no WebSocket": {1, [][]byte{[]byte("hello"), one}, []byte("hello"), true},
	} {
		if got, finished := ended(t, c.after, c.pieces...); !bytes.Equal(got, c.want) || finished != c.finished {
			t.Errorf("%s: the client got %q, finished %v; want %q, %v", what, got, finished, c.want, c.finished)
		}
	}
	var early Ending
	early.End() // before there is a tunnel
	near, far := net.Pipe()
	defer far.Close()
	go early.begin(near, func() {})
	var b [4]byte
	if _, err := io.ReadFull(far, b[:]); err != nil || !bytes.Equal(b[:], goingAway) {
		t.Errorf("ended before it began: %q, %v", b, err)
	}
}
