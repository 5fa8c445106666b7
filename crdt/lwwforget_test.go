package crdt

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// forgetter is a replica that forgets, beside one that hears the same and forgets nothing.
type forgetter struct {
	id           NodeID
	clock        Clock
	is, complete *LWW
	disk         map[string][]byte // parts, as stored
	stored       uint64
}

// keep brings the disk up to date.
func (f *forgetter) keep() {
	for _, p := range f.is.Parts(f.stored) {
		f.disk[p.Name] = p.Value
	}
	f.stored = f.is.Changes()
}

// restart has a replica go on with what is on its disk.
func (f *forgetter) restart(t *testing.T) {
	m := new(LWW)
	for name, value := range f.disk {
		if err := m.SetPart(Part{name, value}); err != nil {
			t.Fatal(err)
		}
	}
	f.is = new(LWW)
	f.is.Merge(m)
	f.stored = f.is.Changes()
}

// forgetters are nodes that write and delete, join with nothing, restart from their disks, and hear of each other by
// pieces that are cut, come twice, out of order and ever so late, while each forgets what all have on disk.
type forgetters struct {
	t         *testing.T
	rng       *rand.Rand
	now       time.Time
	nodes     []*forgetter
	air       []lateDelta
	were      []Settling
	forgotten int
}

// lateDelta is what one tells another, as who forgets tells it, and as it would be had nobody forgotten anything.
type lateDelta struct {
	to          *forgetter
	told, whole []LWWPiece
	knew        LWWDigest // the receiver, then: told is whole for it; nil: it is not
}

func (w *forgetters) one() *forgetter { return w.nodes[w.rng.IntN(len(w.nodes))] }

func (w *forgetters) join() {
	if len(w.nodes) < 5 {
		w.nodes = append(w.nodes, &forgetter{id: NodeID{byte(len(w.nodes) + 1)}, is: new(LWW), complete: new(LWW), disk: map[string][]byte{}})
	}
}

func (w *forgetters) write(f *forgetter) {
	key, value := fmt.Sprint("k/", w.rng.IntN(4)), []byte(nil)
	if w.rng.IntN(2) == 0 {
		value = []byte{byte(w.rng.IntN(10))}
	}
	w.now = w.now.Add(time.Millisecond)
	at := f.clock.Now(w.now, f.id)
	for _, m := range []*LWW{f.is, f.complete} {
		if err := m.Set(key, value, at); err != nil {
			w.t.Fatal(err)
		}
	}
	f.keep()
}

// tell sends what another node does not have.
func (w *forgetters) tell(from, to *forgetter) {
	l := lateDelta{to: to}
	d := from.is.Delta(to.is.Digest(), []int{0, 0, 150}[w.rng.IntN(3)])
	if d.Whole {
		l.knew = to.is.Digest()
	}
	for _, p := range d.Pieces {
		for _, x := range from.complete.DeltaOf(p.Writer, p.From, 0).Pieces {
			l.told, l.whole = append(l.told, p), append(l.whole, upToStamp(x, p.To))
		}
	}
	if len(l.told) > 0 {
		w.air = append(w.air, l)
	}
}

func (w *forgetters) hear(l lateDelta) {
	whole := l.knew != nil && covers(l.to.is.Digest(), l.knew)
	var took []LWWPiece
	for i, p := range l.told {
		if whole {
			took = append(took, l.whole[i])
		} else if aside, err := l.to.is.Apply(p, &l.to.clock, w.now); err != nil {
			w.t.Fatal(err)
		} else if !aside {
			took = append(took, l.whole[i])
		}
	}
	if whole {
		if _, err := l.to.is.ApplyWhole(l.told, &l.to.clock, w.now); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := l.to.complete.ApplyWhole(took, new(Clock), w.now); err != nil {
		w.t.Fatal(err)
	}
	l.to.keep()
}

// meet has all hear everything.
func (w *forgetters) meet() {
	for range 2 {
		for _, from := range w.nodes {
			for _, to := range w.nodes {
				for w.air = nil; from.is.Delta(to.is.Digest(), 0).Pieces != nil; w.air = nil {
					w.tell(from, to)
					for _, l := range w.air {
						w.hear(l)
					}
				}
			}
		}
	}
}

func (w *forgetters) forget(f *forgetter) {
	var kept []LWWDigest
	for _, o := range w.nodes {
		kept = append(kept, o.is.Digest())
	}
	now := SettlingOf(kept)
	w.were = append(w.were, now)
	then := w.were[w.rng.IntN(len(w.were))]
	if !now.Settles(then) {
		return
	}
	before := f.is.Len()
	for _, p := range f.is.Forget(then.All, 1+w.rng.IntN(5)) {
		if f.disk[p.Name] = p.Value; p.Value == nil {
			delete(f.disk, p.Name)
		}
	}
	w.forgotten += before - f.is.Len()
}

// content is what a map says of its keys.
func content(m *LWW) map[string]string {
	all := map[string]string{}
	for key := range m.Keys() {
		value, at, _ := m.Get(key)
		all[key] = fmt.Sprintf("%v at %v", value, at)
	}
	return all
}

// check fails if a node says of a key what it would not say had nobody forgotten anything. It may say nothing of one
// that was overwritten, as it knows, by what it has not heard yet; unless all have heard everything.
func (w *forgetters) check(seed uint64, all bool) {
	for _, f := range w.nodes {
		got, want := content(f.is), content(f.complete)
		if !all {
			maps.DeleteFunc(want, func(key, _ string) bool { _, said := got[key]; return !said })
		}
		if !maps.Equal(got, want) {
			w.t.Fatalf("seed %d: %s has %v, want %v", seed, f.id, got, want)
		}
		gone := 0
		for _, e := range f.is.entries.all() {
			gone += 1 - presence(e)
		}
		if gone != f.is.Deleted() {
			w.t.Fatalf("seed %d: %d keys of %s are deleted, and %d said", seed, gone, f.id, f.is.Deleted())
		}
	}
}

// TestForgettingIsNotSeen: what each node says of its keys is what it would say had nobody forgotten anything.
func TestForgettingIsNotSeen(t *testing.T) {
	forgotten := 0
	for seed := range uint64(800) {
		w := &forgetters{t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_700_000_000, 0)}
		w.join()
		w.join()
		for n := range 200 {
			switch n := w.rng.IntN(100); {
			case n < 25:
				w.write(w.one())
			case n < 55:
				w.tell(w.one(), w.one())
			case n < 85 && len(w.air) > 0:
				i := w.rng.IntN(len(w.air))
				if w.hear(w.air[i]); w.rng.IntN(3) > 0 {
					w.air = slices.Delete(w.air, i, i+1)
				}
			case n < 95:
				w.forget(w.one())
			case n < 97:
				w.one().restart(t)
			case n < 99:
				late := w.air
				w.meet()
				w.air = late
			default:
				w.join()
			}
			if n%8 == 0 {
				w.check(seed, false)
			}
		}
		w.meet()
		w.check(seed, true)
		forgotten += w.forgotten
	}
	if forgotten < 1000 {
		t.Errorf("%d deletions were forgotten: the test shows nothing", forgotten)
	}
}

// upToStamp cuts a piece off behind a stamp.
func upToStamp(p LWWPiece, to uint64) LWWPiece {
	if to < p.To {
		p.To, p.Hides = to, to // also behind what was cut off
	}
	for i, w := range p.Writes {
		if w.At > p.To {
			p.Writes = p.Writes[:i]
			break
		}
	}
	return p
}

// TestWhoSleptThroughADeletionIsTold: a piece from before what is forgotten says so, and what is forgotten is not on disk.
func TestWhoSleptThroughADeletionIsTold(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var m, sleeper LWW
	var clock Clock
	id := NodeID{1}
	for i, value := range [][]byte{[]byte("a"), nil} {
		at := clock.Now(now.Add(time.Duration(i)*time.Second), id)
		if err := m.Set("k", value, at); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			sleeper.Merge(&m)
		}
	}
	parts := m.Forget(m.Digest(), 10)
	if len(parts) != 2 || parts[1].Name != partWrite+"k" || parts[1].Value != nil || m.Len() != 0 || m.size != 0 || m.entries.len()+m.entries.ids.Len() != 0 {
		t.Fatalf("%d keys are left, and to be stored is %v", m.Len(), parts)
	}
	d := m.Delta(sleeper.Digest(), 0)
	if len(d.Pieces) != 1 || d.Pieces[0].Forgot <= sleeper.NewestOf(id) {
		t.Errorf("it is told of %+v", d)
	}
	stored := new(LWW)
	for _, p := range m.Parts(0) {
		if err := stored.SetPart(p); err != nil {
			t.Fatal(err)
		}
	}
	if got := stored.Delta(LWWDigest{}, 0); len(got.Pieces) != 1 || got.Pieces[0].Forgot != d.Pieces[0].Forgot {
		t.Errorf("after a restart it is told of %+v", got)
	}
	b, err := d.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeLWWDelta(b); err != nil || got.Pieces[0].Forgot != d.Pieces[0].Forgot {
		t.Errorf("it is read as %+v (%v)", got, err)
	}
}
