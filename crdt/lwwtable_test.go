package crdt

import (
	"fmt"
	"iter"
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

// TestWhatIsNewIsFound holds what a table says of a writer, of a time and of an id against a look at all
// that it has, while writes come in the order of their stamps, or in any.
func TestWhatIsNewIsFound(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var is lwwTable
		node := func() NodeID { return NodeID{byte(rng.IntN(4))} }
		for i := range uint64(400) {
			e := lwwEntry{stamp: unpack(1000+i, node()), change: i / 3, gone: rng.IntN(5) == 0}
			if rng.IntN(4) == 0 {
				e.first = unpack(1+rng.Uint64N(1000), node())
			}
			if rng.IntN(5) == 0 && seed%2 == 1 {
				e.stamp = unpack(1+rng.Uint64N(1000+i), e.stamp.Node)
			}
			id := lwwID{byte(rng.IntN(3))}
			is.put(fmt.Sprintf("%c/%x/%d", 'a'+rng.IntN(2), id, rng.IntN(20)), e)

			writer, after, since := node(), 900+rng.Uint64N(300+i), rng.Uint64N(2+i/3)
			id = lwwID{byte(rng.IntN(4))}
			var newer, changed, with []string
			for key, e := range is.all() {
				if e.stamp.Node == writer && e.stamp.packed() > after {
					newer = append(newer, key)
				}
				if e.change > since {
					changed = append(changed, key)
				}
				if strings.Contains(key, fmt.Sprintf("/%x/", id)) {
					with = append(with, key)
				}
			}
			for name, c := range map[string]struct {
				got  iter.Seq2[lwwKey, *lwwCell]
				want []string
			}{"newer": {is.newer(writer, after), newer}, "since": {is.since(since), changed}, "with": {is.with(id), with}} {
				var got []string
				for k, cell := range c.got {
					got = append(got, is.key(k))
					if e, _ := is.get(is.key(k)); e != is.entry(k, cell) {
						t.Fatalf("seed %d, put %d, %s: %q is %v, want %v", seed, i, name, is.key(k), is.entry(k, cell), e)
					}
				}
				slices.Sort(got)
				if slices.Sort(c.want); !slices.Equal(got, c.want) {
					t.Fatalf("seed %d, put %d: %s yields %q, want %q", seed, i, name, got, c.want)
				}
			}
		}
	}
}
