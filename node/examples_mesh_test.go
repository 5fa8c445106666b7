package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// The published examples again, at nodes that run: room/examples_test.go has each number
// against the functions, and these bring visitors to a mesh until it is in the situation of the
// example, and look at what the nodes then do.

// exampleRoom is a room in which visitors stay, and need not ask again before the end.
func exampleRoom(policy room.Policy, total int) room.Settings {
	s := testSettings(total)
	s.Policy, s.SessionDuration = policy, 30*time.Minute
	s.BucketSpan, s.RefreshInterval = time.Minute, 2*time.Minute
	return s
}

// exampleWorld has the mesh begin at a full minute of wall time.
func exampleWorld(t *testing.T, s room.Settings, sites ...string) *world {
	t.Helper()
	w := newStoppedWorld(t)
	w.now = w.now.Truncate(time.Minute).Add(-4 * time.Second)
	w.begin(s, sites...)
	w.run(time.Second)
	return w
}

func (w *world) viewAt(i int) *room.View { return w.nodes[i].core.order[0].View() }

// runTo lets time pass until a while after the first full minute.
func (w *world) runTo(begin time.Time, at time.Duration) {
	w.t.Helper()
	w.run(begin.Add(at).Sub(w.now))
}

func repeated(site string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = site
	}
	return all
}

func TestExampleSiteSharesOnAMesh(t *testing.T) {
	s := exampleRoom(room.Even, 1000)
	s.SessionDuration = 10 * time.Second
	w := exampleWorld(t, s, "dublin", "nairobi")
	begin := w.now.Truncate(time.Minute)
	w.runTo(begin, 61*time.Second)
	bring := func(dublin, nairobi int) {
		for i, n := range []int{dublin, nairobi} {
			if in := w.askAll(w.crowd(n, at(w.nodes[i]))); in != n {
				t.Fatalf("%d of %d were let in", in, n)
			}
		}
	}
	bring(500, 500)
	w.runTo(begin, 121*time.Second)
	bring(450, 450) // by the shares of no history, each site has half
	w.runTo(begin, 135*time.Second)
	bring(100, 0)
	for _, at := range []struct {
		at              time.Duration
		dublin, nairobi int
	}{
		{215 * time.Second, 500, 500}, // what was used is more than a minute ago
		{275 * time.Second, 550, 450},
	} {
		w.runTo(begin, at.at)
		for i := range w.nodes {
			v := w.viewAt(i)
			if v.Slots != 1000 || v.Sites[0].New != at.dublin || v.Sites[1].New != at.nairobi {
				t.Errorf("at %v node %d: %d slots, dublin %d, nairobi %d; want 1000, %d, %d",
					at.at, i, v.Slots, v.Sites[0].New, v.Sites[1].New, at.dublin, at.nairobi)
			}
		}
	}
}

// TestExampleMergeAndReserveOnAMesh has visitors of two sites inside and in line.
func TestExampleMergeAndReserveOnAMesh(t *testing.T) {
	s := exampleRoom(room.Even, 600)
	w := exampleWorld(t, s, "dublin", "nairobi")
	begin := w.now.Truncate(time.Minute)
	for i, n := range []int{50, 151} {
		if in := w.askAll(w.crowd(n, at(w.nodes[i]))); in != n {
			t.Fatalf("%d of %d were let in", in, n)
		}
	}
	s.TotalActiveUsers = 200
	w.configure(s)
	for i, n := range [][2]int{{0, 2}, {20, 30}, {40, 20}} {
		w.runTo(begin, time.Duration(i+2)*time.Minute+5*time.Second)
		for site := range n {
			if in := w.askAll(w.crowd(n[site], at(w.nodes[site]))); in != 0 {
				t.Fatalf("%d were let in to a full room", in)
			}
		}
	}
	w.runTo(begin, 4*time.Minute+45*time.Second)
	for _, c := range []struct {
		total, slots int
		reserved     [3]int
	}{
		{200, 0, [3]int{}},
		{201 + 52, 52, [3]int{2, 50, 0}},
	} {
		s.TotalActiveUsers = c.total
		w.configure(s)
		w.run(time.Second)
		for i := range w.nodes {
			v := w.viewAt(i)
			if v.Active != 201 || v.Slots != c.slots || len(v.Buckets) != 3 {
				t.Fatalf("node %d: %d active, %d slots, %d buckets; want 201, %d, 3", i, v.Active, v.Slots, len(v.Buckets), c.slots)
			}
			for k, waiting := range [3]int{2, 50, 60} {
				if b := v.Buckets[k]; b.Waiting != waiting || b.Reserved != c.reserved[k] {
					t.Errorf("node %d, bucket %d: %d wait, %d reserved; want %d, %d", i, k, b.Waiting, b.Reserved, waiting, c.reserved[k])
				}
			}
		}
	}
}

// TestExamplePartialBucketOnAMesh has one bucket for which there are too few places.
func TestExamplePartialBucketOnAMesh(t *testing.T) {
	for _, c := range []struct{ slots, dublin, nairobi, wantDublin, wantNairobi int }{
		{20, 60, 20, 15, 5},
		{500, 400, 600, 200, 300},
	} {
		s := exampleRoom(room.Even, 10)
		w := exampleWorld(t, s, "dublin", "nairobi")
		begin := w.now.Truncate(time.Minute)
		w.askAll(w.crowd(10, w.spread))
		w.runTo(begin, 2*time.Minute+5*time.Second)
		w.askAll(w.crowd(c.dublin, at(w.nodes[0])))
		w.askAll(w.crowd(c.nairobi, at(w.nodes[1])))
		w.runTo(begin, 2*time.Minute+45*time.Second)
		s.TotalActiveUsers += c.slots
		w.configure(s)
		w.run(time.Second)
		for i := range w.nodes {
			if v := w.viewAt(i); v.Sites[0].Reserved != c.wantDublin || v.Sites[1].Reserved != c.wantNairobi {
				t.Errorf("%d slots, node %d: dublin %d, nairobi %d; want %d, %d", c.slots, i, v.Sites[0].Reserved, v.Sites[1].Reserved, c.wantDublin, c.wantNairobi)
			}
		}
	}
}

// TestExampleNodeSplitOnAMesh has the nodes where the examples have them: three in one site,
// or ten in the world.
func TestExampleNodeSplitOnAMesh(t *testing.T) {
	world := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	for _, c := range []struct {
		policy        room.Policy
		total, active int
		sites         []string
		least, most   int // of each node
		together      int // 0: as much as that comes to
	}{
		{room.Even, 300, 0, repeated("a", 3), 100, 100, 300},
		{room.Even, 15, 0, repeated("a", 3), 5, 5, 15},
		{room.Even, 113, 0, world, 11, 12, 113}, // what does not divide goes to three of them
		{room.Curve, 150, 37, world, 45, 45, 0}, // a quarter full, 113 slots
		{room.Curve, 150, 37, repeated("a", 10), 45, 45, 0},
	} {
		w := exampleWorld(t, exampleRoom(c.policy, c.total), c.sites...)
		if c.active > 0 {
			w.askAll(w.crowd(c.active, w.spread))
			w.run(200 * time.Second) // their minute counts for nothing any more: all slots are anywhere's
		}
		sum := 0
		for i := range w.nodes {
			v := w.viewAt(i)
			if sum += v.AllowNew; v.Slots != c.total-c.active || v.AllowNew < c.least || v.AllowNew > c.most {
				t.Errorf("%s, %d nodes: node %d may let in %d of %d, want %d to %d", c.policy, len(c.sites), i, v.AllowNew, v.Slots, c.least, c.most)
			}
		}
		if c.together > 0 && sum != c.together {
			t.Errorf("%s, %d nodes: %d together, want %d", c.policy, len(c.sites), sum, c.together)
		}
	}
}

// TestExampleArrivalsOnAMesh brings an uneven and an even crowd to the two nodes of a site.
func TestExampleArrivalsOnAMesh(t *testing.T) {
	for _, c := range []struct {
		policy        room.Policy
		total, active int
		arrive        [2]int
		in            int
	}{
		{room.Even, 10, 0, [2]int{7, 1}, 6},
		{room.Curve, 26, 16, [2]int{7, 1}, 8},
		{room.Curve, 26, 16, [2]int{8, 7}, 15},
		{room.Counter, 10, 0, [2]int{7, 1}, 8},
		{room.Counter, 10, 0, [2]int{8, 7}, 10},
	} {
		w := exampleWorld(t, exampleRoom(c.policy, c.total), "a", "a")
		w.run(10 * time.Second)
		if c.active > 0 {
			w.askAll(w.crowd(c.active, w.spread))
			w.run(200 * time.Second)
		}
		people := append(w.crowd(c.arrive[0], at(w.nodes[0])), w.crowd(c.arrive[1], at(w.nodes[1]))...)
		if in := w.askAll(people); in != c.in {
			t.Errorf("%s: %d of %v were let in, want %d", c.policy, in, c.arrive, c.in)
		}
	}
}

// TestExampleRemainderOnAMesh looks at what TestSitesPartThenAnywhere uses up.
func TestExampleRemainderOnAMesh(t *testing.T) {
	w := exampleWorld(t, exampleRoom(room.Counter, 200), "london", "san-jose")
	w.run(20 * time.Second)
	for i, n := range []int{30, 20} {
		if in := w.askAll(w.crowd(n, at(w.nodes[i]))); in != n {
			t.Fatalf("%d of %d were let in", in, n)
		}
	}
	w.run(130 * time.Second)
	for i := range w.nodes {
		v := w.viewAt(i)
		if v.Sites[0].New != 22 || v.Sites[1].New != 15 || v.AllowAnywhere != 113 {
			t.Errorf("node %d: london %d, san-jose %d, anywhere %d; want 22, 15, 113", i, v.Sites[0].New, v.Sites[1].New, v.AllowAnywhere)
		}
	}
}
