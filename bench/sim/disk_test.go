package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/durable"
)

// writer is a node that wants one number more written with each tick, and
// remembers what it was told of it.
type writer struct {
	brain
	n         int // of the batch under way
	sure      int // the newest batch that is durable for sure
	due       bool
	flying    bool
	broken    bool
	confirmed *int // by any start
}

func (w *writer) Tick(now time.Time) []node.Message {
	w.due = true
	return w.brain.Tick(now)
}

func (w *writer) Writes() []durable.Write {
	if w.flying || w.broken || !w.due {
		return nil
	}
	w.flying, w.due = true, false
	w.n++
	return w.batch(w.n)
}

// batch is the content of the disk as of a number: two keys that belong together.
func (w *writer) batch(n int) []durable.Write {
	return []durable.Write{{Object: "a", Key: "n", Value: fmt.Append(nil, n)}, {Object: "b", Key: "n", Value: fmt.Append(nil, n)}}
}

func (w *writer) Written(err error, now time.Time) []node.Message {
	if !w.flying {
		panic("nothing is under way")
	}
	w.flying, w.broken = false, err != nil
	if err == nil {
		w.sure = w.n
		*w.confirmed = w.n
	}
	return nil
}

func (w *writer) Stored() []durable.Write { return w.batch(w.sure) }

func (w *writer) StoreBack(now time.Time) {
	if !w.broken {
		panic("the store was fine")
	}
	w.broken, w.n = false, w.sure
}

// runWriters runs a mesh of one node that is a writer, and returns for each of
// its starts what it found on the disk and what it had been told was there.
func runWriters(t *testing.T, cfg Config) (r *Result, starts [][2]int) {
	t.Helper()
	told := 0
	r, err := run(t.Context(), cfg, func(b birth, now time.Time) (brain, error) {
		inner, err := newShipped(withoutStore(b), now)
		w := &writer{brain: inner, due: true, confirmed: &told}
		for i, kept := range b.stored {
			n := 0
			if _, err := fmt.Sscan(string(kept.Value), &n); err != nil {
				t.Fatal(err)
			}
			if i > 0 && n != w.sure {
				t.Errorf("a start finds %d and %d of one batch: it was torn", w.sure, n)
			}
			w.sure = n
		}
		w.n = w.sure
		starts = append(starts, [2]int{w.sure, told})
		return w, err
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r, starts
}

// withoutStore is a birth for the node inside of a writer, whose disk holds what
// no real node writes.
func withoutStore(b birth) birth {
	b.stored = nil
	return b
}

func oneNode(faults ...Fault) Config {
	cfg := small(60, 3*time.Minute)
	cfg.Sites, cfg.Nodes, cfg.Faults = 1, 1, faults
	return cfg
}

// TestCrashKeepsWhatIsConfirmed kills a node many times: it finds the newest batch
// that it was told of, or the one that was under way, and both happen.
func TestCrashKeepsWhatIsConfirmed(t *testing.T) {
	var faults []Fault
	for i := range 40 {
		faults = append(faults, Fault{Kind: Crash, Site: 1, From: time.Duration(i+1)*4*time.Second + 13*time.Millisecond, For: time.Second})
	}
	cfg := oneNode(faults...)
	cfg.Disk = 45 * time.Millisecond
	_, starts := runWriters(t, cfg)
	lost, kept := 0, 0
	for i, s := range starts[1:] {
		switch s[0] - s[1] {
		case 0:
			lost++
		case 1:
			kept++
		default:
			t.Errorf("start %d finds batch %d, and %d was confirmed", i+2, s[0], s[1])
		}
	}
	if lost < 5 || kept < 5 {
		t.Errorf("of batches under way in a crash %d were lost and %d kept", lost, kept)
	}
}

func TestWipeLosesTheDisk(t *testing.T) {
	_, starts := runWriters(t, oneNode(Fault{Kind: Wipe, Site: 1, From: time.Minute, For: time.Second}))
	if len(starts) != 2 || starts[1][0] != 0 || starts[1][1] == 0 {
		t.Errorf("starts find %v", starts)
	}
}

// TestDisksThatFail has writes fail for ten seconds: none is confirmed then, the
// node writes a new file afterwards, and a crash finds what that had.
func TestDisksThatFail(t *testing.T) {
	for _, kind := range []FaultKind{DiskFull, DiskFail} {
		cfg := oneNode(Fault{Kind: kind, Site: 1, From: time.Minute, For: 10 * time.Second},
			Fault{Kind: Crash, Site: 1, From: 90 * time.Second, For: time.Second})
		r, starts := runWriters(t, cfg)
		if r.WritesFailed == 0 || r.Writes < 100 {
			t.Errorf("%s: %d of %d writes failed", kind, r.WritesFailed, r.Writes)
		}
		if d := starts[1][0] - starts[1][1]; len(starts) != 2 || d < 0 || d > 1 {
			t.Errorf("%s: starts find %v", kind, starts)
		}
	}
}

// TestDiskThatStaysFullConfirmsNothing kills the node while its disk is full: what
// it finds is what was confirmed before.
func TestDiskThatStaysFullConfirmsNothing(t *testing.T) {
	for _, kind := range []FaultKind{DiskFull, DiskFail} {
		diffs := map[int]bool{}
		for seed := range map[FaultKind]uint64{DiskFull: 4, DiskFail: 12}[kind] {
			if len(diffs) > 1 {
				break // a disk that fails may have written the last batch or not: both were seen
			}
			cfg := oneNode(Fault{Kind: kind, Site: 1, From: time.Minute, For: time.Minute},
				Fault{Kind: Crash, Site: 1, From: 80 * time.Second, For: time.Second})
			cfg.Seed = seed
			_, starts := runWriters(t, cfg)
			diffs[starts[1][0]-starts[1][1]] = true
		}
		if want := map[FaultKind]int{DiskFull: 1, DiskFail: 2}[kind]; len(diffs) != want || !diffs[0] {
			t.Errorf("%s: a start finds %v batches more than were confirmed", kind, diffs)
		}
	}
}

func TestSlowDiskIsSlow(t *testing.T) {
	count := func(faults ...Fault) int {
		r, _ := runWriters(t, oneNode(faults...))
		return r.Writes
	}
	quick := count()
	slow := count(Fault{Kind: DiskSlow, Site: 1, From: 0, For: 3 * time.Minute, By: 2 * time.Second})
	// One with every tick of 50 ms, or every two seconds.
	if fewer := quick - slow; fewer < 3600-100 || fewer > 3600-80 {
		t.Errorf("%d batches with a quick disk, %d fewer with one that takes 2 s for 3 min", quick, fewer)
	}
}

// TestPausedNodeHearsOfItsWriteLater stops a node while a batch is under way.
func TestPausedNodeHearsOfItsWriteLater(t *testing.T) {
	cfg := oneNode()
	told := 0
	s := newSim(mustDefault(t, cfg), func(b birth, now time.Time) (brain, error) {
		inner, err := newShipped(withoutStore(b), now)
		return &writer{brain: inner, due: true, confirmed: &told}, err
	})
	m := s.machines[0]
	s.start(m)
	if m.disk.step != diskWrites || len(m.disk.stored()) != 0 {
		t.Fatalf("step %d, %d keys on disk", m.disk.step, len(m.disk.stored()))
	}
	s.beginAt(m, Fault{Kind: Pause})
	s.wrote(m)
	if told != 0 || len(m.disk.stored()) != 2 {
		t.Errorf("a paused node was told of batch %d; %d keys on disk", told, len(m.disk.stored()))
	}
	m.brain.(*writer).due = true
	s.resume(m)
	if told != 1 || m.disk.step != diskWrites {
		t.Errorf("told of batch %d after the pause, step %d", told, m.disk.step)
	}
}

// TestJoinedNodesComeLater keeps a node away until it joins.
func TestJoinedNodesComeLater(t *testing.T) {
	cfg := steady()
	cfg.Faults = []Fault{{Kind: Join, Site: 2, Node: 2, From: 2 * time.Minute}}
	_, points := watch(t, cfg)
	if least, most := offline(within(points, 0, 2*time.Minute-time.Second)); least != 1 || most != 1 {
		t.Errorf("%d to %d nodes are offline before one joins, want 1", least, most)
	}
	if _, most := offline(within(points, 2*time.Minute+5*time.Second, 6*time.Minute)); most != 0 {
		t.Errorf("%d nodes are offline afterwards", most)
	}
}

// TestOldPassesAreShown compares what browsers send.
func TestOldPassesAreShown(t *testing.T) {
	cfg := small(100, time.Minute)
	cfg.Old = 0.3
	s := newSim(mustDefault(t, cfg), newShipped)
	s.people.all = []visitor{{dice: 7}}
	var shown []int64
	for n := range int64(200) {
		s.outdate(0)
		s.people.all[0].pass = pass{Pass: node.Pass{Visitor: node.VisitorID{1}, Arrival: time.UnixMilli(n + 1)}}
		shown = append(shown, n+1-millis(s.show(0).Arrival))
	}
	old := 0
	for _, behind := range shown {
		if behind > oldPasses {
			t.Fatalf("a pass %d before the newest was sent", behind)
		}
		if behind > 0 {
			old++
		}
	}
	if old < 30 || old > 90 || !slices.Contains(shown, oldPasses) {
		t.Errorf("%d of 200 requests carry an older pass: %v", old, shown)
	}
}
