package crdt

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestSameIsTheSame keeps sums through all that can happen to rows, as long as Same
// says that they need not be made again, and compares them with new ones: nodes count,
// start again (also in another site), fall silent and come back, messages are lost and
// overtaken, time forgets, and what sessions last changes.
func TestSameIsTheSame(t *testing.T) {
	kept, made := 0, 0
	for seed := range uint64(60) {
		w := newBasisWorld(seed)
		for range 400 {
			w.step()
			for _, s := range w.sums {
				if w.rows.Same(s.basis, s.site, s.room, w.now, w.ret) {
					kept++
				} else {
					made++
					s.counts.Reset()
					s.basis = w.rows.AddSite(&s.counts, s.site, s.room, w.now, w.ret)
				}
				if want := w.rows.CountSite(s.site, s.room, w.now, w.ret); !sameSums(s.counts, want) {
					t.Fatalf("seed %d: %s, room %d: kept %+v, is %+v", seed, s.site, s.room[0], s.counts, want)
				}
			}
			w.checkOldest(t)
		}
	}
	if kept < made {
		t.Errorf("%d sums were kept and %d made again: most shall be kept", kept, made)
	}
}

func sameSums(a, b Counts) bool {
	return a.Active == b.Active && a.Held == b.Held && a.HeldRate == b.HeldRate && maps.Equal(a.Waiting, b.Waiting) &&
		maps.Equal(a.Seen, b.Seen) && maps.Equal(a.Admitted, b.Admitted)
}

// basisWorld is one reader of the rows of three nodes, and the nodes.
type basisWorld struct {
	*rand.Rand
	now     time.Time
	session time.Duration
	ret     Retention
	rows    Rows
	nodes   []*basisNode
	sums    []*keptSum
	late    []RowPiece // on their way
}

type basisNode struct {
	self   Incarnation
	site   string
	rows   *Rows
	silent bool
}

type keptSum struct {
	site   string
	room   RoomID
	counts Counts
	basis  Basis
}

func newBasisWorld(seed uint64) *basisWorld {
	w := &basisWorld{Rand: rand.New(rand.NewPCG(seed, 9)), now: time.Unix(1_700_000_000, 0), session: time.Minute}
	w.ret = Retention{History: 2 * time.Minute, Arrivals: 10 * time.Minute, Room: func(RoomID) Fading {
		return Fading{Session: w.session, Refresh: 20 * time.Second}
	}}
	for i := range 3 {
		n := &basisNode{self: Incarnation{Node: NodeID{byte(i)}}}
		w.nodes = append(w.nodes, n)
		w.start(n)
	}
	for _, site := range []string{"a", "b"} {
		for room := range 2 {
			w.sums = append(w.sums, &keptSum{site: site, room: RoomID{byte(room)}})
		}
	}
	return w
}

func (w *basisWorld) start(n *basisNode) {
	n.self.Boot++
	n.site, n.rows, n.silent = []string{"a", "a", "a", "b"}[w.IntN(4)], new(Rows), false
	n.rows.Open(n.self, n.site, w.now)
}

func (w *basisWorld) step() {
	w.now = w.now.Add(time.Duration(w.IntN(1000)) * time.Millisecond)
	n := w.nodes[w.IntN(len(w.nodes))]
	switch at := w.IntN(200); {
	case at < 30 && !n.silent:
		room := RoomID{byte(w.IntN(2))}
		keys := []Key{
			{room, Active, 0},
			{room, Held, 0},
			{room, HeldRate, 0},
			{room, Seen, TickOf(w.now)},
			{room, Admitted, TickOf(w.now)},
			{room, Waiting, w.now.Unix() / 30 * 30},
		}
		n.rows.Add(n.self, keys[w.IntN(len(keys))], uint64(w.IntN(3)), uint64(w.IntN(2)), w.now)
	case at < 36:
		n.silent = !n.silent
	case at < 38:
		w.start(n)
	case at < 40:
		w.now = w.now.Add(time.Duration(w.IntN(200)) * time.Second)
	case at < 41:
		w.session = time.Duration(10+w.IntN(100)) * time.Second
	case at < 50:
		w.rows.Expire(w.now, w.ret)
	case at < 60 && len(w.late) > 0:
		i := w.IntN(len(w.late))
		w.rows.Apply(w.late[i], w.now)
		w.late = slices.Delete(w.late, i, i+1)
	case at < 62:
		other := new(Rows)
		other.Merge(n.rows)
		w.rows.Merge(other)
	case at == 100:
		w.rows.Drop(RoomID{byte(w.IntN(2))})
	case at < 63: // the clock is put back
		w.now = w.now.Add(-time.Duration(w.IntN(90)) * time.Second)
	case at < 100 && !n.silent:
		n.rows.Close(n.self, TickOf(w.now)-2, w.now)
		for _, p := range n.rows.Delta(w.rows.Digest(), 0).Pieces {
			switch w.IntN(6) {
			case 0: // lost
			case 1:
				w.late = append(w.late, p)
			default:
				w.rows.Apply(p, w.now)
			}
		}
	}
}

// checkOldest looks whether any cell is older than its room's oldest is said to be,
// which would then never be forgotten.
func (w *basisWorld) checkOldest(t *testing.T) {
	t.Helper()
	for owner, row := range w.rows.rows {
		for room, rc := range row.rooms {
			for s := range rc.cells.all() {
				if rc.oldest.past(s) {
					t.Fatalf("row %s, room %d: a cell of kind %d at %d is older than %+v", owner, room[0], s.kind, s.tick, rc.oldest)
				}
			}
		}
	}
}
