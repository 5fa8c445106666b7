package transport

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

func TestOutboxReplacesInPlace(t *testing.T) {
	o := newOutbox(10, 1<<20)
	o.put(slotKey{1, 1}, []byte("a"))
	o.put(slotKey{1, 2}, []byte("b"))
	if replaced, dropped := o.put(slotKey{1, 1}, []byte("A")); !replaced || dropped != 0 {
		t.Errorf("put: got %v, %d", replaced, dropped)
	}
	o.put(slotKey{2, 1}, []byte("c")) // another kind is another state
	got, n := o.take(nil, 1<<20)
	want := appendMessage(appendMessage(appendMessage(nil, 1, []byte("A")), 1, []byte("b")), 2, []byte("c"))
	if n != 3 || !bytes.Equal(got, want) {
		t.Errorf("took %d: %q, want %q", n, got, want)
	}
	// What was taken is not replaced any more.
	if replaced, _ := o.put(slotKey{1, 1}, []byte("x")); replaced {
		t.Error("a message on its way was replaced")
	}
}

func TestOutboxBounds(t *testing.T) {
	o := newOutbox(3, 100)
	for i := range uint64(5) {
		o.put(slotKey{1, i}, []byte{byte(i)})
	}
	if n, bytes := o.depth(); n != 3 || bytes != 3 {
		t.Errorf("depth: got %d, %d, want 3, 3", n, bytes)
	}
	if _, dropped := o.put(slotKey{1, 9}, make([]byte, 99)); dropped != 2 {
		t.Errorf("dropped %d, want 2: one for the length, one for the bytes", dropped)
	}
	// A message over the bound by itself stays: it is the newest.
	o.put(slotKey{1, 10}, make([]byte, 200))
	if n, bytes := o.depth(); n != 1 || bytes != 200 {
		t.Errorf("depth: got %d, %d, want 1, 200", n, bytes)
	}
	if n := o.clear(); n != 1 {
		t.Errorf("cleared %d, want 1", n)
	}
	if n, bytes := o.depth(); n != 0 || bytes != 0 {
		t.Errorf("depth after clear: %d, %d", n, bytes)
	}
}

// TestOutboxAgainstModel compares with the plainest possible version: a list
// that is searched from the front.
func TestOutboxAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const maxLen, maxBytes = 6, 40
		o := newOutbox(maxLen, maxBytes)
		type entry struct {
			key  slotKey
			body []byte
		}
		var model []entry
		size := func() (n int) {
			for _, e := range model {
				n += len(e.body)
			}
			return n
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "put") {
				e := entry{slotKey{rapid.Uint8Range(0, 1).Draw(t, "kind"), rapid.Uint64Range(0, 9).Draw(t, "slot")}, make([]byte, rapid.IntRange(0, 20).Draw(t, "size"))}
				found := false
				for i := range model {
					if model[i].key == e.key {
						model[i].body, found = e.body, true
					}
				}
				if !found {
					model = append(model, e)
				}
				want := 0
				for len(model) > maxLen || (size() > maxBytes && len(model) > 1) {
					model = model[1:]
					want++
				}
				if replaced, dropped := o.put(e.key, e.body); replaced != found || dropped != want {
					t.Fatalf("put: got %v, %d, want %v, %d", replaced, dropped, found, want)
				}
			} else {
				limit := rapid.IntRange(0, 60).Draw(t, "limit")
				var want []byte
				n := 0
				for len(model) > 0 && (n == 0 || len(want)+messageHead+len(model[0].body) <= limit) {
					want = appendMessage(want, model[0].key.kind, model[0].body)
					model = model[1:]
					n++
				}
				if got, m := o.take(nil, limit); m != n || !bytes.Equal(got, want) {
					t.Fatalf("take: got %d, %x, want %d, %x", m, got, n, want)
				}
			}
			if n, bytes := o.depth(); n != len(model) || bytes != size() {
				t.Fatalf("depth: got %d, %d, want %d, %d", n, bytes, len(model), size())
			}
		}
	})
}
