package node

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// transcript is what nodes said and decided, one line each.
type transcript struct {
	lines []string
}

func (j *transcript) note(what ...any) {
	j.lines = append(j.lines, fmt.Sprintln(what...))
}

// eventful runs one world with everything in it that nodes do: crowds, people who
// roam, all methods, a cut, deaths and restarts, a full disk, lost messages, ended sessions.
func eventful(t *testing.T, restless bool) *transcript {
	rooms := []room.Settings{testSettings(20), testSettings(30), testSettings(10), escrowSettings(25)}
	for i := range rooms {
		rooms[i].ID = crdt.RoomID{byte(7 + i)}
		rooms[i].Host = fmt.Sprint("shop", i)
		rooms[i].SessionDuration = 12 * time.Second
		rooms[i].EnabledOriginCommands = []room.OriginCommand{room.Revoke}
	}
	rooms[1].QueueingMethod, rooms[1].NewUsersPerMinute = room.Random, 40
	rooms[1].Policy = room.Counter
	rooms[2].DisableSessionRenewal = true
	rooms[3].OnPartition = room.PartitionOpen
	w := newStoppedWorld(t)
	w.restless, w.more = restless, rooms[1:]
	w.begin(rooms[0], "a", "a", "b", "b", "c")
	j := &transcript{}
	w.note = j.note
	loss := rand.New(rand.NewPCG(5, 6))
	w.lose = func(letter) bool { return loss.IntN(50) == 0 }
	choose := rand.New(rand.NewPCG(3, 4))
	people := w.crowd(120, w.spread)
	for step := range 400 {
		switch step {
		case 80:
			w.cut = true
			w.members()
		case 140:
			w.cut = false
			w.members()
		case 180:
			w.kill(w.nodes[1])
		case 230:
			w.start(w.nodes[1], rooms[0])
		case 250:
			w.nodes[2].disk.fails = true
		case 256:
			w.mend(w.nodes[2])
		case 260:
			rooms[3].TotalActiveUsers = 15
			if err := w.nodes[4].core.Configure(rooms[3], w.now); err != nil {
				t.Fatal(err)
			}
			rooms[0].QueueingMethod, rooms[0].BucketSpan = room.Random, time.Second
			for _, m := range w.nodes {
				if err := m.core.Configure(rooms[0], w.now); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, p := range people[:min(step, len(people))] {
			if choose.IntN(8) > 0 {
				continue
			}
			m := p.at
			if choose.IntN(6) == 0 {
				m = w.nodes[choose.IntN(len(w.nodes))]
			}
			if m.core == nil {
				continue
			}
			r := m.core.Route(fmt.Sprint("shop", i%len(rooms)), "/")
			v, ok := r.Begin(p.pass, p.has, w.now, func(v Verdict) {
				j.note("later", i, v.Admit, v.SetPass, v.Pass, v.Estimate, v.Refresh)
				if v.SetPass {
					p.pass, p.has = v.Pass, true
				}
			})
			if !ok {
				w.post(m, m.core.Flush(w.now))
				continue
			}
			j.note("answer", i, v.Admit, v.SetPass, v.Pass, v.Estimate, v.Refresh)
			if v.SetPass {
				p.pass, p.has = v.Pass, true
			}
			if v.Admit && choose.IntN(40) == 0 {
				r.End(v.Pass, w.now)
			}
		}
		w.run(100 * time.Millisecond)
	}
	for _, m := range w.nodes {
		state, err := m.core.AppendSnapshot(nil)
		if err != nil {
			t.Fatal(err)
		}
		j.note("state", m.id, sha256.Sum256(state))
		for _, x := range m.core.Stored() {
			j.note("stored", m.id, x)
		}
	}
	return j
}

// TestSameInputsSameOutputs runs one world several times and compares every
// message and every answer, byte for byte; once with rooms that never sleep. A map's order that reaches either
// shows here sooner or later.
func TestSameInputsSameOutputs(t *testing.T) {
	first := eventful(t, false)
	for i := range 2 {
		again := eventful(t, i > 0)
		for i := range min(len(first.lines), len(again.lines)) {
			if first.lines[i] != again.lines[i] {
				t.Fatalf("of %d lines, line %d differs:\n%s\n%s", len(first.lines), i, first.lines[i], again.lines[i])
			}
		}
		if len(first.lines) != len(again.lines) {
			t.Fatalf("one run has %d lines, another %d", len(first.lines), len(again.lines))
		}
	}
}
