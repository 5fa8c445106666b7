package crdt

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// airFor is for how many steps a piece is under way at most, where writers are dropped.
const airFor = 25

// dropper is a forgetter that drops writers.
type dropper struct {
	*forgetter
	idle map[NodeID]int // since which step
}

// droppers are forgetters of which some go for good, while others come. What those had written is adopted by the
// others, and they are dropped.
type droppers struct {
	forgetters
	all     []*dropper // that there are
	came    int
	step    int
	sent    []int // in which step each piece that is under way was sent
	settled []settledAt
	must    map[string]Stamp // of each key the newest write that is known to have reached who stays
	wrote   map[string]bool  // all writes ever, with their values
	adopted int
	dropped int
}

type settledAt struct {
	step int
	is   Settling
}

func (w *droppers) come() {
	if len(w.all) < 4 {
		w.came++
		f := &forgetter{id: NodeID{byte(w.came), byte(w.came >> 8)}, is: new(LWW), complete: new(LWW), disk: map[string][]byte{}}
		w.all, w.nodes = append(w.all, &dropper{f, map[NodeID]int{}}), append(w.nodes, f)
	}
}

func (w *droppers) note(f *forgetter, loses bool) {
	w.write(f)
	for key, e := range f.is.entries.all() {
		w.wrote[fmt.Sprintf("%s %v %q %v", key, e.written(), e.value, e.gone)] = true
		if e.written().Node == f.id && !loses && e.written().Compare(w.must[key]) > 0 {
			w.must[key] = e.written()
		}
	}
}

// go1 has a node go: it leaves, and all have heard what it wrote, or it is lost.
func (w *droppers) goes() {
	if len(w.all) < 3 {
		return
	}
	i := w.rng.IntN(len(w.all))
	if w.rng.IntN(2) == 0 {
		w.hearAll()
	} else {
		id := w.all[i].id
		for key, at := range w.must {
			if at.Node == id {
				delete(w.must, key) // it may be lost with it; older ones are not looked for any more
			}
		}
	}
	w.all, w.nodes = slices.Delete(w.all, i, i+1), slices.Delete(w.nodes, i, i+1)
}

func (w *droppers) exists(id NodeID) bool {
	return slices.ContainsFunc(w.all, func(d *dropper) bool { return d.id == id })
}

func (w *droppers) send() {
	if w.tell(w.one(), w.one()); len(w.sent) < len(w.air) {
		for len(w.sent) < len(w.air) {
			w.sent = append(w.sent, w.step)
		}
	}
}

// take has one hear a piece; of a node that is gone, and that it knows nothing of, it hears nothing without a write.
func (w *droppers) take(l lateDelta) {
	took := lateDelta{to: l.to, knew: l.knew}
	for i, p := range l.told {
		if len(p.Writes) == 0 && l.to.is.NewestOf(p.Writer) == 0 && !w.exists(p.Writer) {
			continue
		}
		took.told, took.whole = append(took.told, p), append(took.whole, l.whole[i])
	}
	w.hear(took)
}

func (w *droppers) hearAll() {
	late, sent := w.air, w.sent
	for range 3 {
		for _, from := range w.nodes {
			for _, to := range w.nodes {
				w.air = nil
				w.tell(from, to)
				for _, l := range w.air {
					w.take(l)
				}
			}
		}
	}
	w.air, w.sent = late, sent
}

func (w *droppers) hearOne() {
	for len(w.sent) > 0 && w.step-w.sent[0] > airFor {
		w.air, w.sent = w.air[1:], w.sent[1:]
	}
	if len(w.air) == 0 {
		return
	}
	i := w.rng.IntN(len(w.air))
	if w.take(w.air[i]); w.rng.IntN(3) > 0 {
		w.air, w.sent = slices.Delete(w.air, i, i+1), slices.Delete(w.sent, i, i+1)
	}
}

// look has one adopt what is left of nodes that are gone, drop them, and forget deletions.
func (w *droppers) look(d *dropper) {
	for _, id := range slices.SortedFunc(d.is.Tellers(), NodeID.Compare) {
		if !w.exists(id) && w.rng.IntN(2) == 0 {
			keys := slices.Sorted(d.is.ToldBy(id))
			var stamps, same []Stamp
			w.now = w.now.Add(time.Millisecond)
			next := func() Stamp { stamps = append(stamps, d.clock.Now(w.now, d.id)); return stamps[len(stamps)-1] }
			d.is.Adopt(keys, next)
			same = stamps
			d.complete.Adopt(keys, func() Stamp { at := same[0]; same = same[1:]; return at })
			w.adopted += len(keys)
			d.keep()
		}
	}
	idle := map[NodeID]int{}
	var drop []NodeID
	for id := range d.is.Idle() {
		if w.exists(id) {
			continue
		}
		since, was := d.idle[id]
		if !was {
			since = w.step
		}
		if idle[id] = since; w.step-since > airFor {
			drop = append(drop, id)
		}
	}
	d.idle = idle
	slices.SortFunc(drop, NodeID.Compare)
	w.store(d, d.is.Drop(drop))
	w.dropped += len(drop)
	w.forgetOf(d)
}

func (w *droppers) store(d *dropper, parts []Part) {
	for _, p := range parts {
		if d.disk[p.Name] = p.Value; p.Value == nil {
			delete(d.disk, p.Name)
		}
	}
}

// forgetOf has one forget deletions that were on all disks for longer than anything is under way.
func (w *droppers) forgetOf(d *dropper) {
	var kept []LWWDigest
	var unknown []NodeID
	for _, o := range w.nodes {
		kept = append(kept, o.is.Digest())
		for id := range o.is.known {
			if d.is.NewestOf(id) == 0 {
				unknown = append(unknown, id)
			}
		}
	}
	now := SettlingOf(kept)
	w.settled = append(w.settled, settledAt{w.step, now})
	for i := len(w.settled) - 1; i >= 0; i-- {
		then := w.settled[i]
		for id := range then.is.Any {
			if d.is.NewestOf(id) == 0 {
				unknown = append(unknown, id)
			}
		}
		if w.step-then.step > airFor && now.Without(unknown).Settles(then.is.Without(unknown)) {
			before := d.is.Len()
			w.store(d, d.is.Forget(then.is.All, 1+w.rng.IntN(5)))
			w.forgotten += before - d.is.Len()
			return
		}
	}
}

// TestDroppedWritersAreNotSeen: what each node says of its keys is what it would say had nobody dropped a writer or forgotten
// a deletion; no write is lost that who stays has heard, nor comes to be another one; and only who is there is known in the end.
func TestDroppedWritersAreNotSeen(t *testing.T) {
	adopted, dropped, forgotten := 0, 0, 0
	for seed := range uint64(60) {
		w := &droppers{
			forgetters: forgetters{t: t, rng: rand.New(rand.NewPCG(seed, 4)), now: time.Unix(1_700_000_000, 0)},
			must:       map[string]Stamp{}, wrote: map[string]bool{},
		}
		w.come()
		w.come()
		for n := range 400 {
			w.step++
			switch n := w.rng.IntN(100); {
			case n < 20:
				w.note(w.one(), false)
			case n < 45:
				w.send()
			case n < 75:
				w.hearOne()
			case n < 90:
				w.look(w.all[w.rng.IntN(len(w.all))])
			case n < 92:
				w.one().restart(t)
			case n < 95:
				w.hearAll()
			case n < 97:
				w.goes()
			default:
				w.come()
			}
			if n%8 == 0 {
				w.check(seed, false)
			}
		}
		w.air, w.sent = nil, nil
		for range 4 * airFor { // nobody comes and goes: all is adopted, dropped and forgotten
			w.step++
			w.hearAll()
			w.look(w.all[w.rng.IntN(len(w.all))])
		}
		w.step += airFor + 1
		w.hearAll()
		for _, d := range w.all {
			w.look(d)
		}
		w.check(seed, true)
		w.verdict(seed)
		adopted, dropped, forgotten = adopted+w.adopted, dropped+w.dropped, forgotten+w.forgotten
	}
	if min(adopted, dropped, forgotten) < 250 {
		t.Errorf("%d writes were adopted, %d writers dropped and %d deletions forgotten: the test shows nothing", adopted, dropped, forgotten)
	}
}

// verdict looks at what is left when all have heard everything.
func (w *droppers) verdict(seed uint64) {
	for _, d := range w.all {
		for id := range d.is.known {
			if id != nobody && !w.exists(id) {
				w.t.Fatalf("seed %d: %s still knows of %s, which is gone", seed, d.id, id)
			}
		}
		for key, e := range d.is.entries.all() {
			if !w.wrote[fmt.Sprintf("%s %v %q %v", key, e.written(), e.value, e.gone)] {
				w.t.Fatalf("seed %d: %s has %v of %q, which nobody wrote", seed, d.id, e, key)
			}
		}
		for key, at := range w.must {
			if e, there := d.is.entries.get(key); there && e.written().Compare(at) < 0 {
				w.t.Fatalf("seed %d: %s has the write of %v of %q, and not the one of %v", seed, d.id, e.written(), key, at)
			} else if !there && d.complete.lives(key) {
				w.t.Fatalf("seed %d: %s has forgotten %q, which has a value", seed, d.id, key)
			}
		}
	}
}

func (m *LWW) lives(key string) bool {
	_, _, ok := m.Get(key)
	return ok
}

// TestTenThousandWritersLeaveNothing: of 10,000 nodes, of which a few exist at a time, each writes what is there to stay, and
// something of its own that is deleted when it is gone. In the end there is no more than after the first thousand.
func TestTenThousandWritersLeaveNothing(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var m LWW
	var clock Clock
	id := func(i int) (id NodeID) {
		binary.BigEndian.PutUint32(id[:], uint32(i+1))
		return id
	}
	disk := map[string][]byte{}
	var stored uint64
	store := func(parts []Part) {
		for _, p := range parts {
			if disk[p.Name] = p.Value; p.Value == nil {
				delete(disk, p.Name)
			}
		}
	}
	size := func() [6]int {
		return [6]int{m.Len(), m.Writers(), m.size, len(m.entries.writers), len(m.entries.firsts), len(disk)}
	}
	var before [6]int
	for i := range 10_000 {
		now = now.Add(time.Minute)
		next := func() Stamp { return clock.Now(now, id(i)) }
		for _, key := range []string{fmt.Sprint("room/", i%100), "node/" + id(i).String()} {
			if err := m.Set(key, []byte{byte(i)}, next()); err != nil {
				t.Fatal(err)
			}
		}
		if i > 3 {
			if err := m.Set("node/"+id(i-3).String(), nil, next()); err != nil {
				t.Fatal(err)
			}
			m.Adopt(slices.Sorted(m.ToldBy(id(i-3))), next)
		}
		store(m.Forget(m.Digest(), 10))
		var gone []NodeID
		for w := range m.Idle() {
			gone = append(gone, w)
		}
		store(m.Drop(gone))
		store(m.Parts(stored))
		if stored = m.Changes(); i == 1000 {
			before = size()
		}
	}
	if after := size(); after != before {
		t.Errorf("keys, writers, bytes, places of writers, first stamps and parts on disk are %v, after a thousand they were %v", after, before)
	}
	if got, at, _ := m.Get("room/7"); len(got) != 1 || at.Node != id(9907) {
		t.Errorf("a room was written last by %s: %v", at.Node, got)
	}
}
