package replica

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// TestNewsAddUpToAll: a snapshot and the news since say what a snapshot says that is taken in the end.
func TestNewsAddUpToAll(t *testing.T) {
	for seed := range uint64(5) {
		m := newMesh(t, 300+seed)
		nodes := m.sites(2, "east", "west")
		x := nodes[0]
		var records [][]byte
		take := func(write func([]byte) ([]byte, error)) {
			t.Helper()
			r, err := write(nil)
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, r)
		}
		kept, quiet := x.Kept(), 0
		take(x.AppendSnapshot)
		for range 120 {
			if m.rng.IntN(3) == 0 {
				n := nodes[m.rng.IntN(len(nodes))]
				m.active(n, roomID(m.rng.IntN(5)), uint64(1+m.rng.IntN(3)), 0)
				m.seen(n, roomID(m.rng.IntN(5)), 1)
			}
			m.run(time.Duration(m.rng.IntN(1500)) * time.Millisecond)
			if news := x.NewsSince(kept); !news.Empty() {
				if !news.Counts() {
					quiet++
				}
				kept = x.Kept()
				take(news.Append)
			}
		}
		m.run(3 * time.Second)
		take(x.NewsSince(kept).Append)
		restored := func(records ...[]byte) string {
			t.Helper()
			r, err := New(Config{Self: crdt.Incarnation{Node: x.peer.ID, Boot: x.peer.Boot + 1}, Site: "east", Retention: testRetention, Rand: rand.New(rand.NewPCG(1, 2))})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Restore(records, m.now); err != nil {
				t.Fatal(err)
			}
			all, err := r.AppendSnapshot(nil)
			if err != nil {
				t.Fatal(err)
			}
			return string(all)
		}
		all, err := x.AppendSnapshot(nil)
		if err != nil {
			t.Fatal(err)
		}
		if restored(records...) != restored(all) {
			t.Errorf("seed %d: %d records say something else than all does", seed, len(records))
		}
		if quiet == 0 {
			t.Errorf("seed %d: there were no news with nothing but signs of life", seed)
		}
		m.noErrors()
	}
}
