package crdt

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
)

// decoders are all readers of bytes from outside. Each returns what encodes
// again what it has read.
var decoders = []struct {
	name   string
	decode func([]byte) (func([]byte) ([]byte, error), error)
}{
	{"row digest", func(b []byte) (func([]byte) ([]byte, error), error) {
		v, err := DecodeRowDigest(b)
		return v.AppendBinary, err
	}},
	{"row delta", func(b []byte) (func([]byte) ([]byte, error), error) {
		v, err := DecodeRowDelta(b)
		return v.AppendBinary, err
	}},
	{"rows", func(b []byte) (func([]byte) ([]byte, error), error) {
		v, err := DecodeRows(b, MaxState)
		if err != nil {
			return nil, err
		}
		return v.AppendBinary, nil
	}},
	{"summary digest", func(b []byte) (func([]byte) ([]byte, error), error) {
		v, err := DecodeSummaryDigest(b)
		return v.AppendBinary, err
	}},
	{"summary delta", func(b []byte) (func([]byte) ([]byte, error), error) {
		v, err := DecodeSummaryDelta(b)
		return v.AppendBinary, err
	}},
	{"summaries", func(b []byte) (func([]byte) ([]byte, error), error) {
		v, err := DecodeSummaries(b, MaxState)
		if err != nil {
			return nil, err
		}
		return v.AppendBinary, nil
	}},
	{"lww digest", func(b []byte) (func([]byte) ([]byte, error), error) {
		v, err := DecodeLWWDigest(b)
		return v.AppendBinary, err
	}},
	{"lww delta", func(b []byte) (func([]byte) ([]byte, error), error) {
		v, err := DecodeLWWDelta(b)
		return v.AppendBinary, err
	}},
}

// samples returns one honest encoding for each decoder, in its order.
func samples() [][]byte {
	now := time.Unix(1_800_000_000, 0)
	rows, sums, lww := busyRows(3, 4, now), new(Summaries), new(LWW)
	for i := range 3 {
		by := Incarnation{testNode(i), 1}
		sums.TakeOver(string(rune('a'+i)), by, 0, now)
		for room := range 4 {
			sums.Publish(string(rune('a'+i)), by, testRoom(room), Summarize(rows.CountSite("site", testRoom(room), now, Retention{}), time.Minute), now)
		}
		sums.Close(string(rune('a'+i)), by, TickOf(now)-1, now)
		var clock Clock
		must(0, lww.Set(string(rune('k'+i)), []byte(strings.Repeat("x", 30*i)), clock.Now(now, testNode(i))))
		must(0, lww.Set("gone", nil, clock.Now(now, testNode(i))))
	}
	return [][]byte{
		must(rows.Digest().AppendBinary(nil)), must(rows.Delta(nil, 0).AppendBinary(nil)), must(rows.AppendBinary(nil)),
		must(sums.Digest().AppendBinary(nil)), must(sums.Delta(nil, 0).AppendBinary(nil)), must(sums.AppendBinary(nil)),
		must(lww.Digest().AppendBinary(nil)), must(lww.Delta(nil, 0).AppendBinary(nil)),
	}
}

// busyRows are rows of some nodes that have counted in some rooms for two
// minutes.
func busyRows(nodes, rooms int, now time.Time) *Rows {
	rows := new(Rows)
	for n := range nodes {
		one, owner := new(Rows), Incarnation{testNode(n), 3}
		one.Open(owner, "site", now)
		for room := range rooms {
			id := RoomID{byte(room), byte(room >> 8), 'r'}
			for back := range int64(12) {
				one.Add(owner, Key{id, Seen, TickOf(now) - back}, uint64(100+back), 0, now)
				one.Add(owner, Key{id, Admitted, TickOf(now) - back}, uint64(10+back), 0, now)
				one.Add(owner, Key{id, Waiting, now.Unix() - 5*back}, uint64(1000), uint64(back*10), now)
			}
			one.Add(owner, Key{Room: id, Kind: Active}, 5000, 4000, now)
		}
		one.Close(owner, TickOf(now)-1, now)
		rows.Merge(one)
	}
	return rows
}

func TestDecodeRoundTrip(t *testing.T) {
	for i, data := range samples() {
		encode, err := decoders[i].decode(data)
		if err != nil {
			t.Fatalf("%s: %v", decoders[i].name, err)
		}
		if again := must(encode(nil)); !bytes.Equal(again, data) {
			t.Errorf("%s: encoded again: %d bytes, want the same %d", decoders[i].name, len(again), len(data))
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for i, data := range samples() {
		d := decoders[i]
		for _, bad := range map[string][]byte{
			"empty":           {},
			"another version": append([]byte{3}, data[1:]...),
			"too long":        append(bytes.Clone(data), 0),
			"cut":             data[:len(data)-1],
			"huge":            append(bytes.Clone(data), make([]byte, MaxState)...),
			"claimed array":   {1, 0xdd, 0xff, 0xff, 0xff, 0xff},
			"nil array":       {1, 0xc0},
		} {
			if _, err := d.decode(bad); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s from % x…: got %v, want ErrMalformed", d.name, bad[:min(len(bad), 8)], err)
			}
		}
		for n := range data {
			if _, err := d.decode(data[:n]); err == nil {
				t.Errorf("%s: the first %d of %d bytes were accepted", d.name, n, len(data))
			}
		}
	}
}

// allocFactor is how much memory a decoder may ask for, in all, per byte of
// input; allocBase is what it may ask for besides.
const (
	allocFactor = 40
	allocBase   = 16 << 10
)

func checkAllocation(t *testing.T, which int, data []byte) {
	t.Helper()
	d := decoders[which]
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	encode, err := d.decode(data)
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(allocFactor*len(data)+allocBase); got > most {
		t.Errorf("%s: %d bytes of input took %d bytes, at most %d", d.name, len(data), got, most)
	}
	if err != nil {
		return
	}
	// What has been accepted has a form of its own, which stays as it is.
	first := must(encode(nil))
	encode, err = d.decode(first)
	if err != nil {
		t.Fatalf("%s: what was encoded is refused: %v", d.name, err)
	}
	if second := must(encode(nil)); !bytes.Equal(first, second) {
		t.Errorf("%s: encodings differ:\n% x\n% x", d.name, first, second)
	}
}

func TestDecodeAllocation(t *testing.T) {
	for i := range decoders {
		for _, filler := range []byte{0x00, 0x80, 0x90, 0x91, 0xa0, 0xc0, 0xc4, 0xdc, 0xdd} {
			for _, head := range [][]byte{{1, 0xdd, 0, 0, 0x10, 0}, {1, 0xdc, 0xff, 0xff}, {1, 0x91}} {
				checkAllocation(t, i, append(head, bytes.Repeat([]byte{filler}, 100_000)...))
			}
		}
	}
	big := must(busyRows(12, 40, time.Unix(1_800_000_000, 0)).AppendBinary(nil))
	checkAllocation(t, 2, big)
	checkAllocation(t, 1, must(busyRows(12, 40, time.Unix(1_800_000_000, 0)).Delta(nil, 0).AppendBinary(nil)))
}

func FuzzDecode(f *testing.F) {
	for i, data := range samples() {
		f.Add(uint8(i), data)
	}
	f.Add(uint8(1), []byte{1, 0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Add(uint8(7), []byte{1, 0x91, 0xc6, 0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		checkAllocation(t, int(which)%len(decoders), data)
	})
}

func TestSizesBoundEncodings(t *testing.T) {
	for _, v := range []uint64{0, 1, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxUint64} {
		w := newWriter(nil)
		w.uint(v)
		if got := w.buf.Len() - 1; got > uintSize(v) {
			t.Errorf("%d takes %d bytes, bound %d", v, got, uintSize(v))
		}
	}
	for _, v := range []int64{0, -1, -32, -33, -128, -129, -32768, -32769, math.MinInt32, math.MinInt32 - 1, math.MinInt64, 1, 128, math.MaxInt64} {
		w := newWriter(nil)
		w.int(v)
		if got := w.buf.Len() - 1; got > intSize(v) {
			t.Errorf("%d takes %d bytes, bound %d", v, got, intSize(v))
		}
	}
}
