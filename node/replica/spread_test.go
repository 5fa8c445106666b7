package replica

import (
	"flag"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// plates are the disks of a mesh: what each node would find there after a crash.
type plates struct {
	*mesh
	of    map[*member]*plate
	wrote []written // by anybody, ever
}

type written struct {
	key string
	at  crdt.Stamp
}

type plate struct {
	is map[string]crdt.Stamp // by key: the newest write on disk

	writing  map[string]crdt.Stamp // is, once the write under way is done; nil: there is none
	more     crdt.LWWDigest
	done     time.Time
	slowness time.Duration // of the next write
}

// step has time pass, at the disks as well.
func (p *plates) step() {
	p.mesh.step()
	for _, x := range p.nodes {
		d := p.of[x]
		if d == nil || !x.alive {
			continue
		}
		if d.writing != nil && !p.now.Before(d.done) {
			d.is, d.writing = d.writing, nil
			x.Keep(d.more)
		}
		if d.writing == nil {
			d.writing, d.more, d.done = map[string]crdt.Stamp{}, x.Unkept(), p.now.Add(d.slowness)
			maps.Insert(d.writing, x.Stamps())
		}
		p.send(x, x.Spreads(p.now))
	}
}

// holds reports whether a disk has all that a node has written, or what came after it.
func (d *plate) holds(wrote map[string]crdt.Stamp) bool {
	for key, at := range wrote {
		if d.is[key].Compare(at) < 0 {
			return false
		}
	}
	return true
}

// allKnown fails if a node says that it knows of a write, and has neither that nor one that has won over it.
func (p *plates) allKnown() {
	p.t.Helper()
	for _, x := range p.nodes {
		for _, w := range p.wrote {
			if at, _ := x.TellerOf(w.key); x.HoldsUpTo(w.at) && at.Compare(w.at) < 0 {
				p.t.Fatalf("%s knows of all writes up to %v, and of %s it has that of %v", x.peer.ID, w.at, w.key, at)
			}
		}
	}
}

func newPlates(t *testing.T, seed uint64, sites ...string) *plates {
	p := &plates{mesh: newMesh(t, seed), of: map[*member]*plate{}}
	for _, x := range p.sites(2, sites...) {
		p.of[x] = &plate{is: map[string]crdt.Stamp{}}
		x.Keep(nil)
	}
	return p
}

var keptSeeds = flag.Uint64("kept-seeds", 12, "how many meshes `TestWhatIsKeptIsOnDisk` runs")

// TestWhatIsKeptIsOnDisk has operators write at all nodes of a mesh with a bad network and slow
// disks: who believes that another node has all of a node's writes on its disk is right, and so is who says what it knows.
func TestWhatIsKeptIsOnDisk(t *testing.T) {
	for seed := range *keptSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newPlates(t, seed, "a", "b", "c")
			p.loss, p.dup, p.maxDelay = .2, .2, 300*time.Millisecond
			wrote := map[*member]map[string]crdt.Stamp{}
			believed := 0
			for range 600 {
				if x := p.nodes[p.rng.IntN(len(p.nodes))]; p.rng.IntN(8) == 0 {
					since, key := x.Written(), fmt.Sprintf("k%d", p.rng.IntN(6))
					if err := x.Set(key, make([]byte, p.rng.IntN(crdt.MaxValue)), p.now); err != nil {
						t.Fatal(err)
					}
					if wrote[x] == nil {
						wrote[x] = map[string]crdt.Stamp{}
					}
					at, _ := x.TellerOf(key)
					wrote[x][key], p.wrote = at, append(p.wrote, written{key, at})
					if p.rng.IntN(4) > 0 {
						x.Spread(since, p.now)
					}
					p.of[x].slowness = time.Duration(p.rng.IntN(400)) * time.Millisecond
				}
				if p.rng.IntN(50) == 0 {
					p.nodes[p.rng.IntN(len(p.nodes))].Survey()
				}
				if p.rng.IntN(3) == 0 {
					p.passOn()
				}
				p.step()
				p.allKnown()
				for _, x := range p.nodes {
					for _, y := range p.nodes {
						if len(wrote[x]) == 0 || !x.KeepsWritten(y.peer.ID, x.Written()) {
							continue
						}
						if believed++; !p.of[y].holds(wrote[x]) {
							t.Fatalf("%s believes that %s has all its writes on disk, and it has not", x.peer.ID, y.peer.ID)
						}
					}
				}
			}
			if believed == 0 {
				t.Error("nobody was ever believed: the test shows nothing")
			}
			p.noErrors()
		})
	}
}

// passOn has a node take a write of another one out of turn, once that one's disk has it.
func (p *plates) passOn() {
	from, to := p.nodes[p.rng.IntN(len(p.nodes))], p.nodes[p.rng.IntN(len(p.nodes))]
	key := fmt.Sprintf("k%d", p.rng.IntN(6))
	if value, at, ok := from.Get(key); ok && from.Tellable(at) {
		to.Take(key, value, at, p.now)
	}
}

// TestASpreadTakesOneRoundTrip writes more than one message holds, at a node that leads no site:
// where disks take no time, all members have it without waiting for the pushes between them.
func TestASpreadTakesOneRoundTrip(t *testing.T) {
	p := newPlates(t, 1, "a", "b", "c")
	x := p.nodes[1]
	if x.lead.on {
		x = p.nodes[0]
	}
	for name, pages := range map[string]int{"a field": 1, "pages": 10} {
		since := x.Written()
		for n := range pages {
			if err := x.Set(fmt.Sprintf("%s %d", name, n), make([]byte, min(pages, 2)*20_000), p.now); err != nil {
				t.Fatal(err)
			}
		}
		x.Spread(since, p.now)
		begun, kept := p.now, 0
		for ; kept < len(p.nodes) && p.now.Sub(begun) < time.Second; p.step() {
			kept = 0
			for _, y := range p.nodes {
				if x.KeepsWritten(y.peer.ID, x.Written()) {
					kept++
				}
			}
		}
		if took := p.now.Sub(begun); kept < len(p.nodes) || took > 150*time.Millisecond {
			t.Errorf("%s: after %v %d of %d nodes have it on disk", name, took, kept, len(p.nodes))
		}
	}
	p.noErrors()
}

// TestASurveyTellsOfAllWriters asks what others have on disk of what nobody spreads.
func TestASurveyTellsOfAllWriters(t *testing.T) {
	p := newPlates(t, 2, "a", "b")
	for i, x := range p.nodes {
		if err := x.Set(fmt.Sprint("key ", i), []byte("v"), p.now); err != nil {
			t.Fatal(err)
		}
	}
	settled := func(x *member) bool {
		for _, y := range p.nodes {
			for _, at := range x.Stamps() {
				if !x.Keeps(y.peer.ID, at) {
					return false
				}
			}
		}
		return true
	}
	for range 500 {
		p.step()
	}
	for _, x := range p.nodes {
		if settled(x) {
			t.Errorf("%s knows of all disks and has asked nobody", x.peer.ID)
		}
		x.Survey()
	}
	for range 10 {
		p.step()
	}
	for _, x := range p.nodes {
		if !settled(x) {
			t.Errorf("%s has asked and does not know what is on all disks", x.peer.ID)
		}
	}
	p.noErrors()
}
