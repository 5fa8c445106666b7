package node

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
)

// factsOnDisk returns the facts that a start finds, and what it has left to do.
func factsOnDisk(t *testing.T, d *disk) (facts map[string]string, left factsBatches) {
	t.Helper()
	var s storing
	found, err := s.load(d.content())
	if err != nil {
		t.Fatal(err)
	}
	facts = map[string]string{}
	for name, value := range found {
		facts[name] = string(value)
	}
	return facts, s.facts
}

// TestFactsComeToDiskAsAWhole crashes before, between and after all batches of a change, and once more between those
// that are left then: a start finds all of the change or nothing, but for what was to be removed, and in the end just it.
func TestFactsComeToDiskAsAWhole(t *testing.T) {
	large := strings.Repeat("x", maxFactBatch/5)
	for name, change := range map[string]map[string]string{
		"nothing":      {},
		"one":          {"w/1": "new"},
		"many":         {"w/1": large + "1", "w/2": large + "2", "w/3": large, "w/4": large, "w/5": large, "w/6": large, "w/new": large, "k/1": "new"},
		"with removed": {"w/1": "", "w/2": large + "2", "w/3": large, "w/4": large, "w/5": large, "w/6": large, "f/1": "new", "k/1": "new"},
		"removed":      {"w/1": "", "w/2": "", "k/1": ""},
	} {
		before := map[string]string{"k/1": "old", "w/1": "old", "w/2": "old", "w/3": "old"}
		after := maps.Clone(before)
		var parts []crdt.Part
		for _, name := range slices.Sorted(maps.Keys(change)) {
			p := crdt.Part{Name: name}
			if value := change[name]; value != "" {
				p.Value, after[name] = []byte(value), value
			} else {
				delete(after, name)
			}
			parts = append(parts, p)
		}
		isWhole := func(got map[string]string) bool {
			return slices.ContainsFunc([]map[string]string{before, after}, func(want map[string]string) bool {
				got := maps.Clone(got)
				maps.DeleteFunc(got, func(name, _ string) bool { return change[name] == "" && want[name] == "" })
				return maps.Equal(got, want)
			})
		}
		for first := 0; ; first++ {
			var d disk
			for name, value := range before {
				d.put([]durable.Write{{Object: factsObject, Key: name, Value: []byte(value)}})
			}
			f := newFactsBatches(parts)
			for range first {
				var batch []durable.Write
				batch, f = f.next()
				d.put(batch)
			}
			_, left := factsOnDisk(t, &d)
			for second := 0; ; second++ {
				if got, _ := factsOnDisk(t, &d); !isWhole(got) {
					t.Fatalf("%s: after %d and %d batches there is %q", name, first, second, slices.Sorted(maps.Keys(got)))
				}
				if left.done() {
					break
				}
				var batch []durable.Write
				batch, left = left.next()
				d.put(batch)
			}
			for _, w := range d.content() {
				if w.Object != factsObject {
					t.Errorf("%s: after %d batches %s/%s is left", name, first, w.Object, w.Key)
				}
			}
			if f.done() {
				if got, _ := factsOnDisk(t, &d); !maps.Equal(got, after) {
					t.Errorf("%s: in the end there is %q", name, slices.Sorted(maps.Keys(got)))
				}
				break
			}
		}
	}
}

// TestACrashBetweenBatchesLosesNoFact has a node hear of more new values of facts than go in one batch, from another node than had
// written them before, and crash after each batch. What it tells whoever knows nothing yet is all of what was there, or of what came.
func TestACrashBetweenBatchesLosesNoFact(t *testing.T) {
	const facts, size = 60, 40_000
	var first, second crdt.Clock
	old, came := new(crdt.LWW), new(crdt.LWW)
	write := func(m *crdt.LWW, clock *crdt.Clock, by crdt.NodeID, value string) {
		t.Helper()
		for n := range facts {
			if err := m.Set(fmt.Sprint("fact/", n), []byte(value), clock.Now(noon, by)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(old, &first, crdt.NodeID{2}, strings.Repeat("old ", size/4))
	came.Merge(old)
	second.Observe(came.Newest(), noon)
	write(came, &second, crdt.NodeID{3}, strings.Repeat("new ", size/4))
	for batches := 0; ; batches++ {
		var d disk
		c := storedCore(t, &d)
		put := func() bool {
			batch := c.Writes()
			if batch == nil {
				return false
			}
			d.put(batch)
			c.Written(nil, noon)
			return true
		}
		hear := func(m *crdt.LWW) {
			t.Helper()
			if err := c.replica.RestoreMap(m.Parts(0)); err != nil {
				t.Fatal(err)
			}
		}
		hear(old)
		for put() {
		}
		hear(came)
		all := true
		for range batches {
			all = put() && all
		}
		again := storedCore(t, &d)
		told := new(crdt.LWW)
		parts, _ := again.replica.MapParts(0)
		for _, p := range parts {
			if err := told.SetPart(p); err != nil {
				t.Fatal(err)
			}
		}
		peer, clock := new(crdt.LWW), new(crdt.Clock)
		if _, err := peer.ApplyWhole(told.Delta(nil, 0).Pieces, clock, noon); err != nil {
			t.Fatal(err)
		}
		values := map[string]int{}
		for n := range facts {
			value, _, _ := peer.Get(fmt.Sprint("fact/", n))
			values[string(value[:min(3, len(value))])]++
		}
		if !reflect.DeepEqual(values, map[string]int{"old": facts}) && !reflect.DeepEqual(values, map[string]int{"new": facts}) {
			t.Errorf("after %d batches a peer hears %v", batches, values)
		}
		if !all {
			if batches < 4 {
				t.Errorf("all was written in %d batches, so that nothing is tried", batches)
			}
			break
		}
	}
}
