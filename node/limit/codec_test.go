package limit

import (
	"errors"
	"reflect"
	"testing"

	"github.com/ropeline/ropeline/crdt"
)

func TestCodec(t *testing.T) {
	c := counted{3, 9, 7, 1500, rounds{2, 8}, []group[count]{{1 << 63, 9, []count{{1, 2}, {1<<64 - 1, 1<<32 - 1}}}, {5, 6, []count{{7, 8}}}}}
	if got, err := decodeCounted(c.encode()); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("got %+v, %v", got, err)
	}
	k := known{9, 4, 5, 6, []mark{{crdt.NodeID{1, 15: 2}, 3, 4}}, []group[fact]{{1 << 63, 9, []fact{{1, 2, 3, 4, 5}, {1<<64 - 1, 1<<32 - 1, 1<<32 - 1, maxAge, maxAge}}}}}
	if got, err := decodeKnown(k.encode()); err != nil || !reflect.DeepEqual(got, k) {
		t.Errorf("got %+v, %v", got, err)
	}
	a := asked{3, 9, []crdt.NodeID{{1}, {2, 15: 3}}, []crdt.NodeID{{4}}}
	if got, err := decodeAsked(a.encode()); err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range [][]byte{nil, {0}, c.encode()[:20], append(k.encode(), 0), {2, 1, 1, 1, 1, 1, 0xcf, 255, 255, 255, 255, 255, 255, 255, 255}} {
		if _, err := decodeCounted(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("counted: got %v of %x", err, bad)
		}
		if _, err := decodeKnown(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("known: got %v of %x", err, bad)
		}
		if _, err := decodeAsked(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("asked: got %v of %x", err, bad)
		}
	}
}

// The longest message that is sent fits into what a message may have, and is taken.
func TestLongestMessages(t *testing.T) {
	const most = 256 << 10
	var c batch[count]
	var k batch[fact]
	for i := range 2*maxItems + 100 {
		of := &Counter{sum: 1<<64 - 1 - uint64(i%MaxSlots), terms: 1<<32 - 1}
		c.add(of, count{1<<64 - 1, 1<<32 - 1})
		k.add(of, fact{1<<64 - 1, 1<<32 - 1, 1<<32 - 1, maxAge, maxAge})
	}
	for _, groups := range c.parts() {
		b := (&counted{1<<64 - 1, maxTime, 1<<64 - 1, maxAge, rounds{1<<64 - 1, 1<<64 - 1}, groups}).encode()
		if _, err := decodeCounted(b); err != nil || len(b) > most {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	n := 0
	heard := make([]mark, maxHeard)
	for i := range heard {
		heard[i] = mark{crdt.NodeID{255, 8: 255}, 1<<64 - 1, 1<<64 - 1}
	}
	for _, groups := range k.parts() {
		b := (&known{maxTime, 1<<64 - 1, 1<<64 - 1, 1<<64 - 1, heard, groups}).encode()
		got, err := decodeKnown(b)
		if err != nil || len(b) > most {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		for _, g := range got.groups {
			n += len(g.items)
		}
	}
	if n != 2*maxItems+100 {
		t.Errorf("%d of %d keys arrive", n, 2*maxItems+100)
	}
}

// The longest time for which a key can be limited can be told.
func TestLongestLimitIsTold(t *testing.T) {
	r := &Terms{Period: Millis(MaxPeriod.Milliseconds()), Requests: 1}
	table := newTestTable(1<<16, r)
	table.Tell = true
	now := start - start%r.Period
	table.Take(1, r, now)
	v := table.Take(1, r, now)
	s, _ := table.StateOf(1, r, now)
	got, err := decodeKnown((&known{groups: []group[fact]{{items: []fact{factOf(s, now)}}}}).encode())
	if err != nil || got.groups[0].items[0].limited.Duration() != v.Reset {
		t.Errorf("got %+v, %v; want to hear of a limit for %v", got, err, v.Reset)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add((&counted{3, 9, 7, 1500, rounds{2, 8}, []group[count]{{1 << 63, 9, []count{{1, 2}}}}}).encode())
	f.Add((&known{9, 4, 5, 6, []mark{{crdt.NodeID{1}, 3, 4}}, []group[fact]{{1 << 63, 9, []fact{{1, 2, 3, 4, 5}}}}}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decodeCounted(b); err == nil {
			again, err := decodeCounted(m.encode())
			if err != nil || !reflect.DeepEqual(again, m) {
				t.Errorf("got %+v, %v, want %+v", again, err, m)
			}
		}
		if m, err := decodeKnown(b); err == nil {
			again, err := decodeKnown(m.encode())
			if err != nil || !reflect.DeepEqual(again, m) {
				t.Errorf("got %+v, %v, want %+v", again, err, m)
			}
		}
		if m, err := decodeAsked(b); err == nil {
			again, err := decodeAsked(m.encode())
			if err != nil || !reflect.DeepEqual(again, m) {
				t.Errorf("got %+v, %v, want %+v", again, err, m)
			}
		}
	})
}
