package node

import (
	"log/slog"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/bootstrap"
	"github.com/ropeline/ropeline/node/durable"
)

// TestHowADirectoryComesToBeOfAMesh: one that is of a mesh stays of it; a new one is of none
// until it has heard of one, unless the node is alone; one that has a store and is of no mesh is refused.
func TestHowADirectoryComesToBeOfAMesh(t *testing.T) {
	for _, c := range []struct {
		what string
		boot Bootstrap
	}{
		{"named", Bootstrap{Names: []string{"a1", "b1"}}},
		{"the only one named", Bootstrap{Names: []string{"a1"}}},
		{"without a list", Bootstrap{}},
		{"alone", Bootstrap{Alone: true}},
	} {
		dir := t.TempDir()
		data := openDataDir(t, dir)
		cfg := Config{Data: data, Name: "a1", Site: "a", Bootstrap: &c.boot}
		if _, err := newBootstrapper(cfg, []durable.Write{{Object: factsObject, Key: "x", Value: []byte("y")}}, slog.New(slog.DiscardHandler), time.Now); err == nil || !data.Mesh().Record.Mesh.IsZero() {
			t.Errorf("%s: a store without a mesh is taken for one of mesh %v", c.what, data.Mesh().Record.Mesh)
		}
		b, err := newBootstrapper(cfg, nil, slog.New(slog.DiscardHandler), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		got, alone := data.Mesh(), c.boot.Alone
		if got.Record.Mesh.IsZero() == alone || got.Minted != alone || is(b.joined) != alone || is(b.minted) != alone {
			t.Errorf("%s: got %+v, joined %v, minted %v", c.what, got, is(b.joined), is(b.minted))
		}
		if alone && got.Record.Minter != data.Self().Node {
			t.Errorf("%s: minted by %s", c.what, got.Record.Minter)
		}
		data.Close()
		again := openDataDir(t, dir)
		if is := again.Mesh(); !is.Record.Same(got.Record) || is.Minted != got.Minted {
			t.Errorf("%s: the next start finds %+v, want %+v", c.what, is, got)
		}
		if !got.Record.Mesh.IsZero() {
			if err := again.SetMesh(bootstrap.Disk{Record: bootstrap.Record{Mesh: bootstrap.MeshID{5}}}); err == nil {
				t.Errorf("%s: the directory comes to be of another mesh", c.what)
			}
		}
		if err := again.Abandon(); err != nil {
			t.Fatal(err)
		}
		again.Close()
		if left := openDataDir(t, dir); !left.Mesh().Record.Mesh.IsZero() {
			t.Errorf("%s: a directory that was abandoned is of mesh %s", c.what, left.Mesh().Record.Mesh)
		} else {
			left.Close()
		}
	}
}

// TestAForeignSessionWaits: who was inside in another mesh waits here, since they came there.
func TestAForeignSessionWaits(t *testing.T) {
	w := newWorld(t, escrowSettings(5), "a")
	if in := w.askAll(w.crowd(20, w.spread)); in != 5 {
		t.Fatalf("%d are in, want 5", in)
	}
	came := w.now.Add(-2 * time.Hour).Truncate(time.Millisecond)
	p := &person{name: "foreign", at: w.nodes[0], has: true, pass: Pass{
		Visitor: VisitorID{1}, Room: roomID, Arrival: came,
		LastPoll: w.now.Add(30 * time.Second), Refresh: time.Second, Foreign: true,
	}}
	v := w.decide(p.at, p.pass, true)
	if v.Admit || !v.Pass.Arrival.Equal(came) || v.Pass.Visitor != p.pass.Visitor || v.Pass.Foreign || !v.SetPass {
		t.Errorf("got %+v, want to wait since %v", v, came)
	}
	p.pass.LastPoll = w.now.Add(-24 * time.Hour)
	if v := w.decide(p.at, p.pass, true); v.Admit || v.Pass.Arrival.Equal(came) {
		t.Errorf("a session that ended a day ago keeps its place: %+v", v.Pass)
	}
}
