package bootstrap

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// TestCloneGoesOnAlike does random things to a machine and to its copy: the copy goes on as the
// original does, and nothing that is done to one shows in the other.
func TestCloneGoesOnAlike(t *testing.T) {
	names := testLists[2]
	rec := Record{Mesh: MeshID{1}, Names: names, Minter: crdt.NodeID{1}, MinterName: "a1"}
	for seed := range uint64(500) {
		d := rand.New(rand.NewPCG(seed, 3))
		now := time.Unix(1e9, 0)
		m := New(Config{Self: crdt.NodeID{1}, Name: names[d.IntN(2)], Names: names, Random: func(b []byte) { b[len(b)-1] = 5 }}, now)
		do := func(all ...*Machine) {
			now = now.Add([]time.Duration{0, askEvery, Round, Quiet}[d.IntN(4)])
			deed, from := d.IntN(3), 1+d.IntN(3)
			in := Message{Kind: kind(1 + d.IntN(2)), Name: append(names, "x")[from], Names: names, Nonce: 7, Echo: 5 * uint64(d.IntN(2))}
			if d.IntN(4) == 0 {
				in.Holds = rec
				in.Holds.Minter[0] = byte(1 + d.IntN(2))
			}
			peers := []Peer{{crdt.NodeID{2}, "a2"}, {crdt.NodeID{3}, "b1"}}[:d.IntN(3)]
			for _, m := range all {
				switch deed {
				case 0:
					m.Tick(now, peers)
				case 1:
					m.Receive(crdt.NodeID{byte(1 + from)}, in, now)
				case 2:
					m.Written()
				}
			}
		}
		for range 12 {
			do(m)
		}
		before, clone := m.AppendState(nil, now), m.Clone()
		if !bytes.Equal(clone.AppendState(nil, now), before) {
			t.Fatalf("seed %d: the copy is another one", seed)
		}
		then := now
		for range 6 {
			do(clone)
		}
		if !bytes.Equal(m.AppendState(nil, then), before) {
			t.Fatalf("seed %d: what was done to the copy shows in the original", seed)
		}
		now = then
		again := m.Clone()
		for i := range 10 {
			do(m, again)
			if !bytes.Equal(m.AppendState(nil, now), again.AppendState(nil, now)) {
				t.Fatalf("seed %d: after %d deeds the copy is another one", seed, i+1)
			}
		}
	}
}

// TestStateKnowsWhatMatters: machines that go on differently have different states, and time makes
// no other one of a machine that has nothing to ask for.
func TestStateKnowsWhatMatters(t *testing.T) {
	now := time.Unix(1e9, 0)
	other := Peer{crdt.NodeID{2}, "a2"}
	start := func(d Disk) *Machine {
		return New(Config{Self: crdt.NodeID{1}, Name: "a1", Names: testLists[1], Disk: d, Random: func(b []byte) { b[0]++ }}, now)
	}
	first := start(Disk{}).AppendState(nil, now)
	for name, deed := range map[string]func(*Machine) time.Time{
		"time":     func(*Machine) time.Time { return now.Add(time.Second) },
		"tick":     func(m *Machine) time.Time { m.Tick(now, nil); return now },
		"reached":  func(m *Machine) time.Time { m.peers = []Peer{other}; return now },
		"answer":   func(m *Machine) time.Time { m.said[other.ID] = saying{name: "a2"}; return now },
		"conflict": func(m *Machine) time.Time { m.conflict[other.ID] = "another list"; return now },
		"write":    func(m *Machine) time.Time { m.next = &Disk{}; return now },
		"came":     func(m *Machine) time.Time { m.came = other.ID; return now },
		"nonce":    func(m *Machine) time.Time { m.nonce++; return now },
	} {
		m := start(Disk{})
		if bytes.Equal(m.AppendState(nil, deed(m)), first) {
			t.Errorf("%s: the state is the same as without", name)
		}
	}
	done := start(Disk{Record: Record{Mesh: MeshID{1}}, Minted: true})
	if !bytes.Equal(done.AppendState(nil, now), done.AppendState(nil, now.Add(time.Hour))) {
		t.Error("an hour makes a difference to a machine that only answers")
	}
}
