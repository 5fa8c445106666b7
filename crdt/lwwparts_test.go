package crdt

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// TestPartsAreTheMap stores, after each of many changes, what Parts says has changed,
// and nothing else. At every moment the stored parts make the same map.
func TestPartsAreTheMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	now := time.Unix(1_767_268_800, 0)
	var clocks [3]Clock
	var all [3]LWW
	stored, saved := map[string][]byte{}, uint64(0)
	written := 0
	for range 400 {
		now = now.Add(time.Second)
		i := rng.IntN(len(all))
		var value []byte
		if rng.IntN(4) > 0 {
			value = fmt.Append(nil, rng.IntN(1000))
		}
		if err := all[i].Set(fmt.Sprint("key ", rng.IntN(30)), value, clocks[i].Now(now, testNode(i))); err != nil {
			t.Fatal(err)
		}
		if err := all[0].hear(all[i].Delta(all[0].Digest(), 0), &clocks[0], now); err != nil {
			t.Fatal(err)
		}
		for _, p := range all[0].Parts(saved) {
			stored[p.Name] = p.Value
			written++
		}
		saved = all[0].Changes()
		if n := len(all[0].Parts(saved)); n > 1 {
			t.Fatalf("%d parts have changed since all were stored", n)
		}
		var again LWW
		for _, name := range slices.Sorted(maps.Keys(stored)) {
			if err := again.SetPart(Part{name, stored[name]}); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := again.Parts(0), all[0].Parts(0); !reflect.DeepEqual(got, want) {
			t.Fatalf("stored: %x\nthe map: %x", got, want)
		}
	}
	if written > 400*6 {
		t.Errorf("%d parts written for 400 changes", written)
	}
}

func TestBadPartsAreRefused(t *testing.T) {
	var m LWW
	var c Clock
	if err := m.Set("a", []byte("x"), c.Now(time.Unix(1_767_268_800, 0), testNode(1))); err != nil {
		t.Fatal(err)
	}
	parts := m.Parts(0)
	if len(parts) != 2 {
		t.Fatalf("%d parts of a map with one write", len(parts))
	}
	for _, p := range []Part{
		{"gold", parts[1].Value},
		{partWrite + "b", parts[1].Value},
		{parts[1].Name, parts[1].Value[:5]},
		{parts[1].Name, nil},
		{partKnown + "12", parts[0].Value},
		{partKnown + string(bytes.Repeat([]byte("x"), 32)), parts[0].Value},
		{parts[0].Name, []byte{}},
		{parts[0].Name, append(bytes.Clone(parts[0].Value), 1)},
	} {
		if err := new(LWW).SetPart(p); err == nil {
			t.Errorf("part %q = %x was taken", p.Name, p.Value)
		}
	}
}
