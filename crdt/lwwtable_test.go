package crdt

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestLWWTableIsAMap puts keys of all shapes, several times, and holds the table against a map.
func TestLWWTableIsAMap(t *testing.T) {
	room, node := strings.Repeat("0a", idBytes), strings.Repeat("b1", idBytes)
	keys := []string{
		"", "/", "limits", "limits/", "limits/" + room, "limits/" + room + "/", "told/" + room + "/" + node,
		"told/" + room + "/" + room, "told/" + node + "/" + room, room, "/" + room, "a/" + room + "x", "a/" + room[1:],
		"a/" + strings.ToUpper(room), "a/" + room[:30] + "zz", "a/b/" + room, "limits/" + node,
	}
	for i := range 1000 {
		keys = append(keys, fmt.Sprintf("many/%032x/%d", i, i%3))
	}
	var is lwwTable
	want := map[string]lwwEntry{}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		key := keys[rng.IntN(len(keys))]
		e := lwwEntry{stamp: Stamp{Wall: int64(i), Logical: uint16(i), Node: NodeID{byte(i % 5)}}, change: uint64(i)}
		if e.gone = i%7 == 0; !e.gone {
			e.value = fmt.Sprint(rng.IntN(2 * sharedValues))
		}
		is.put(key, e)
		want[key] = e
		if got, known := is.get(key); !known || got != e {
			t.Fatalf("%q is %v, want %v", key, got, e)
		}
	}
	if got := maps.Collect(is.all()); !maps.Equal(got, want) || is.len() != len(want) {
		t.Errorf("the table has %d keys, want %d, or others", len(got), len(want))
	}
	var in []string
	for k, c := range is.sorted() {
		in = append(in, is.key(k))
		if got := is.entry(c); got != want[in[len(in)-1]] {
			t.Errorf("%q is %v in order, want %v", in[len(in)-1], got, want[in[len(in)-1]])
		}
	}
	if len(in) != len(want) {
		t.Errorf("%d keys are in order, want %d", len(in), len(want))
	}
	var backwards lwwTable
	for _, key := range slices.Backward(in) {
		backwards.put(key, want[key])
	}
	i := 0
	for k := range backwards.sorted() {
		if got := backwards.key(k); got != in[i] {
			t.Fatalf("put the other way round, %q is number %d, want %q: replicas would write the same state differently", got, i, in[i])
		}
		i++
	}
	if n := len(is.forms); n > len(keys)-1000+3 {
		t.Errorf("%d forms of keys, of which a thousand differ by their ids alone", n)
	}
	for _, key := range keys {
		_, wanted := want[key]
		if _, known := is.get(key); known != wanted {
			t.Errorf("%q is known: %v", key, known)
		}
	}
}
