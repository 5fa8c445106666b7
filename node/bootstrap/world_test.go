package bootstrap

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// world is some machines, their disks, and the messages between them.
type world struct {
	rnd   *rand.Rand
	now   time.Time
	hosts []*host
	air   []flying
	ids   uint64

	minted map[MeshID]map[crdt.NodeID]bool // as the disks have ever said
	log    []string
}

// host is a place with a name, a list and a disk, at which machines run one after the other.
type host struct {
	name string
	list []string
	id   crdt.NodeID // of the disk
	disk Disk
	m    *Machine // nil: down
	cut  bool
}

type flying struct {
	at   time.Time
	from crdt.NodeID
	out  Out
}

const testStep = 100 * time.Millisecond

func newWorld(seed uint64, names, others []string, list []string) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1e9, 0), minted: map[MeshID]map[crdt.NodeID]bool{}}
	for _, name := range names {
		w.hosts = append(w.hosts, &host{name: name, list: list})
	}
	for _, name := range others {
		w.hosts = append(w.hosts, &host{name: name})
	}
	for _, h := range w.hosts {
		w.empty(h)
	}
	return w
}

func (w *world) say(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%6.1f ", w.now.Sub(time.Unix(1e9, 0)).Seconds())+fmt.Sprintf(format, args...))
}

// empty takes a host's disk away, and its process.
func (w *world) empty(h *host) {
	w.ids++
	h.m, h.disk, h.id = nil, Disk{}, crdt.NodeID{}
	binary.BigEndian.PutUint64(h.id[:], w.rnd.Uint64()) // so that ids are in any order
	binary.BigEndian.PutUint64(h.id[8:], w.ids)
}

// spare reports whether a disk may be lost: it holds no mesh that was minted, or another
// disk of a named node holds it as well. All named disks may not be lost.
func (w *world) spare(h *host) bool {
	mesh := h.disk.Record.Mesh
	return len(w.minted[mesh]) == 0 || len(h.list) == 0 || slices.ContainsFunc(w.hosts, func(o *host) bool { return o != h && len(o.list) > 0 && o.disk.Record.Mesh == mesh })
}

func (w *world) start(h *host) {
	h.m = New(Config{Self: h.id, Name: h.name, Site: "a", Names: h.list, Disk: h.disk, Random: func(b []byte) {
		for i := range b {
			b[i] = byte(w.rnd.Uint32())
		}
	}}, w.now)
}

// settle writes what a machine wants written, unless the process dies before or after.
func (w *world) settle(h *host, crash float64) {
	if h.m == nil {
		return
	}
	d, ok := h.m.Write()
	if !ok {
		return
	}
	if w.rnd.Float64() < crash {
		w.say("%s dies before its write", h.name)
		h.m = nil
		return
	}
	h.disk = d
	w.say("%s writes %.8s minted=%v", h.name, d.Record.Mesh, d.Minted)
	if d.Minted {
		if w.minted[d.Record.Mesh] == nil {
			w.minted[d.Record.Mesh] = map[crdt.NodeID]bool{}
		}
		w.minted[d.Record.Mesh][h.id] = true
	}
	if w.rnd.Float64() < crash {
		w.say("%s dies after its write", h.name)
		h.m = nil
		return
	}
	h.m.Written()
}

// send has messages fly: once, twice or never, and for as long as late allows.
func (w *world) send(from *host, out []Out, faults bool, late time.Duration) {
	for _, o := range out {
		n := 1
		if faults {
			n = []int{0, 1, 1, 1, 2}[w.rnd.IntN(5)]
		}
		for range n {
			at := w.now.Add(testStep)
			if faults {
				at = w.now.Add(time.Duration(w.rnd.Int64N(int64(late))) + 1)
			}
			w.air = append(w.air, flying{at, from.id, o})
		}
	}
}

func (w *world) step(faults bool, late time.Duration, crash float64) {
	w.now = w.now.Add(testStep)
	var due []flying
	w.air = slices.DeleteFunc(w.air, func(f flying) bool {
		if f.at.After(w.now) {
			return false
		}
		due = append(due, f)
		return true
	})
	w.rnd.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	for _, f := range due {
		for _, h := range w.hosts {
			if h.id == f.out.To && h.m != nil && (!h.cut || !faults) {
				m, err := Decode(f.out.Append(nil))
				if err != nil {
					panic(err)
				}
				w.send(h, h.m.Receive(f.from, m, w.now), faults, late)
				w.settle(h, crash)
			}
		}
	}
	for _, h := range w.hosts {
		if h.m == nil {
			continue
		}
		var peers []Peer
		for _, o := range w.hosts {
			if o != h && o.m != nil && (!faults || !h.cut && !o.cut) {
				peers = append(peers, Peer{o.id, o.name})
			}
		}
		w.send(h, h.m.Tick(w.now, peers), faults, late)
		w.settle(h, crash)
	}
}

// fault does one thing at random.
func (w *world) fault() {
	h := w.hosts[w.rnd.IntN(len(w.hosts))]
	switch w.rnd.IntN(5) {
	case 0:
		if h.m == nil {
			w.start(h)
		}
	case 1:
		h.m = nil
	case 2, 3:
		if w.spare(h) {
			w.say("%s is emptied of %.8s", h.name, h.disk.Record.Mesh)
			w.empty(h)
			if w.rnd.IntN(2) == 0 {
				w.start(h)
			}
		}
	case 4:
		h.cut = !h.cut
	}
}

// check returns what is wrong: capacity is made by more than one node, or of two meshes.
func (w *world) check() error {
	n := 0
	for _, by := range w.minted {
		n += len(by)
	}
	if n > 1 {
		return fmt.Errorf("%d nodes have minted, in %d meshes", n, len(w.minted))
	}
	return nil
}

// heal starts all that is down and lets all run; it returns what is wrong at the end.
func (w *world) heal() error {
	for _, h := range w.hosts {
		if h.m == nil {
			w.start(h)
		}
		h.cut = false
	}
	for range int(60 * time.Second / testStep) {
		w.step(false, 0, 0)
	}
	mesh := w.hosts[0].disk.Record.Mesh
	gone := false
	for _, h := range w.hosts {
		if h.m.Lost() != nil || h.disk.Record.Mesh != mesh || mesh.IsZero() {
			return fmt.Errorf("%s holds mesh %s, %s mesh %s: %s", w.hosts[0].name, mesh, h.name, h.disk.Record.Mesh, h.m.Waits(w.now))
		}
		gone = gone || h.m.Returned() != crdt.NodeID{}
	}
	minter := w.hosts[0].disk.Record.Minter
	there := slices.ContainsFunc(w.hosts, func(h *host) bool { return h.id == minter })
	switch {
	case there && len(w.minted) == 0:
		return fmt.Errorf("the minter is there, and has not minted: %s", w.hosts[0].m.Waits(w.now))
	case !there && !gone:
		return fmt.Errorf("the minter's disk is gone, and nobody says so")
	}
	return nil
}

var testLists = [][]string{{"a1"}, {"a1", "a2"}, {"a1", "a2", "b1"}, {"b1", "a1", "c1", "a2"}}

// TestOneMesh starts nodes in any order, empties disks, kills processes around their
// writes, cuts nodes off, and loses, doubles and delays messages by up to many rounds.
// Whatever happens, one node mints at most; and once nothing happens any more, all are
// of one mesh, and the minter mints, or its disk is known to be gone.
func TestOneMesh(t *testing.T) {
	seeds, stuck := uint64(2000), 0
	if testing.Short() {
		seeds = 300
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 2))
		list := testLists[rnd.IntN(len(testLists))]
		w := newWorld(seed, list, []string{"x1", "x2"}[:rnd.IntN(3)], list)
		late := time.Duration(1+rnd.IntN(100)) * testStep
		often, crash := 0.005+0.1*rnd.Float64(), 0.3*rnd.Float64()*float64(rnd.IntN(2))
		for range 200 + rnd.IntN(600) {
			if w.rnd.Float64() < often {
				w.fault()
			}
			w.step(true, late, crash)
			if err := w.check(); err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, lines(w.log))
			}
		}
		if err := w.heal(); err != nil {
			stuck++
			t.Logf("seed %d: %v\n%s", seed, err, lines(w.log))
		}
		if err := w.check(); err != nil {
			t.Fatalf("seed %d: after all is well: %v\n%s", seed, err, lines(w.log))
		}
		if stuck > 0 {
			t.FailNow()
		}
	}
}

func lines(all []string) (s string) {
	for _, l := range all {
		s += l + "\n"
	}
	return s
}
