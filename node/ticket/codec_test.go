package ticket

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

func fullBatch(n int) Batch {
	b := Batch{Room: crdt.RoomID{7}, Anchor: crdt.NodeID{9}}
	for i := range n {
		b.Items = append(b.Items, Renewal{
			Ticket:  Ticket{Anchor: b.Anchor, Boot: math.MaxUint64, Block: math.MaxUint32, Seq: math.MaxUint64 - uint64(i)},
			PassEnd: time.UnixMilli(maxMillis),
			At:      epoch.Add(-time.Duration(maxAge) * time.Millisecond),
		})
	}
	return b
}

func TestBatchRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, MaxBatch} {
		b := fullBatch(n)
		data := AppendBatch(nil, b, epoch)
		if len(data) > MaxMessage {
			t.Errorf("%d items take %d bytes, at most %d", n, len(data), MaxMessage)
		}
		got, err := DecodeBatch(data, epoch)
		if err != nil {
			t.Fatal(err)
		}
		if got.Room != b.Room || got.Anchor != b.Anchor || len(got.Items) != n {
			t.Fatalf("got %d items, want %d", len(got.Items), n)
		}
		for i := range got.Items {
			if got.Items[i] != b.Items[i] {
				t.Fatalf("item %d: got %+v, want %+v", i, got.Items[i], b.Items[i])
			}
		}
	}
}

// TestBatchSendsAges: the receiver's clock may be off, the age is not.
func TestBatchSendsAges(t *testing.T) {
	b := Batch{Items: []Renewal{{Ticket: mine(1), PassEnd: at(60), At: at(10)}, {Ticket: mine(2), At: at(99)}}}
	got, err := DecodeBatch(AppendBatch(nil, b, at(12)), at(1000))
	if err != nil {
		t.Fatal(err)
	}
	if !got.Items[0].At.Equal(at(998)) {
		t.Errorf("got %v, want two seconds before now", got.Items[0].At)
	}
	if !got.Items[1].At.Equal(at(1000)) {
		t.Errorf("got %v, a check-in is not in the future", got.Items[1].At)
	}
}

func TestAcksRoundTrip(t *testing.T) {
	a := Acks{Room: crdt.RoomID{1}, Anchor: self.Node, Items: []Ack{{Ticket: mine(1), End: at(5)}, {Ticket: mine(2)}, {Ticket: mine(3), Ended: true}}}
	prefix := []byte("before")
	data := AppendAcks(bytes.Clone(prefix), a)
	if !bytes.HasPrefix(data, prefix) {
		t.Error("what dst held is gone")
	}
	got, err := DecodeAcks(data[len(prefix):])
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, a) {
		t.Errorf("got %+v, want %+v", got, a)
	}
	if !got.Items[1].End.IsZero() || got.Items[1].Ended || !got.Items[2].End.IsZero() {
		t.Error("a refusal has an end, or says that the session was ended")
	}
}

func TestDecodeRefusesRubbish(t *testing.T) {
	good := AppendBatch(nil, fullBatch(2), epoch)
	cases := map[string][]byte{
		"empty":           {},
		"version":         append([]byte{2}, good[1:]...),
		"trailing":        append(bytes.Clone(good), 0),
		"too long":        make([]byte, MaxMessage+1),
		"huge array":      append(bytes.Clone(good[:37]), 0xdd, 0xff, 0xff, 0xff, 0xff),
		"nil for number":  append([]byte{0xc0}, good[1:]...),
		"float version":   append([]byte{0xca, 0x3f, 0x80, 0, 0}, good[1:]...),
		"negative number": append([]byte{0xff}, good[1:]...),
		"short id":        {1, 0xc4, 1, 0},
		"nil id":          {1, 0xc0, 0xc0, 0x90},
	}
	for n := range good {
		cases["cut"] = good[:n]
		for name, data := range cases {
			if _, err := DecodeBatch(data, epoch); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s, %d bytes: got %v", name, len(data), err)
			}
		}
	}
	if _, err := DecodeAcks(good); !errors.Is(err, ErrMalformed) {
		t.Errorf("a batch passes for acknowledgements: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(AppendBatch(nil, fullBatch(3), epoch))
	f.Add(AppendAcks(nil, Acks{Items: []Ack{{Ticket: mine(1), End: at(5)}}}))
	f.Add(AppendAcks(nil, Acks{Items: []Ack{{Ticket: mine(1), Ended: true}, {Ticket: mine(2)}}}))
	f.Add(AppendEnds(nil, Ends{Items: []Ticket{mine(1), mine(2)}}))
	f.Add([]byte{1, 0xc4, 16})
	f.Fuzz(func(t *testing.T, data []byte) {
		if b, err := DecodeBatch(data, epoch); err == nil {
			again, err := DecodeBatch(AppendBatch(nil, b, epoch), epoch)
			if err != nil || !reflect.DeepEqual(again, b) {
				t.Errorf("%+v does not survive a round: %v", b, err)
			}
		} else if !errors.Is(err, ErrMalformed) {
			t.Errorf("error %v", err)
		}
		if a, err := DecodeAcks(data); err == nil {
			again, err := DecodeAcks(AppendAcks(nil, a))
			if err != nil || !reflect.DeepEqual(again, a) {
				t.Errorf("%+v does not survive a round: %v", a, err)
			}
		} else if !errors.Is(err, ErrMalformed) {
			t.Errorf("error %v", err)
		}
		if e, err := DecodeEnds(data); err == nil {
			again, err := DecodeEnds(AppendEnds(nil, e))
			if err != nil || !reflect.DeepEqual(again, e) {
				t.Errorf("%+v does not survive a round: %v", e, err)
			}
		} else if !errors.Is(err, ErrMalformed) {
			t.Errorf("error %v", err)
		}
	})
}

// TestDecodeAllocatesLittle: a short message cannot make the decoder allocate
// more than a small multiple of its length.
func TestDecodeAllocatesLittle(t *testing.T) {
	claim := append(AppendBatch(nil, Batch{}, epoch)[:37], 0xdc, 0x13, 0x88) // 5000 items, none there
	var before, after runtime.MemStats
	const runs = 100
	runtime.ReadMemStats(&before)
	for range runs {
		if _, err := DecodeBatch(claim, epoch); err == nil {
			t.Fatal("items that are not there were decoded")
		}
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / runs; n > 8192 {
		t.Errorf("%d bytes for a message of %d", n, len(claim))
	}
}

func BenchmarkBatch(b *testing.B) {
	batch := fullBatch(1000)
	var dst []byte
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			dst = AppendBatch(dst[:0], batch, epoch)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeBatch(dst, epoch); err != nil {
				b.Fatal(err)
			}
		}
	})
}
