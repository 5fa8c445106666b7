package node

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/transport"
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

// TestABootstrapperRestsOnceTheMeshStands, and finds out all the same that the minter is back with an empty disk: at
// once from a member, and soon from who asks before being one.
func TestABootstrapperRestsOnceTheMeshStands(t *testing.T) {
	for _, late := range []bool{false, true} {
		data := openDataDir(t, t.TempDir())
		rec := bootstrap.Record{Mesh: bootstrap.MeshID{9}, Names: []string{"a1", "b1"}, Minter: crdt.NodeID{1}, MinterName: "a1", MinterSite: "a"}
		if err := data.SetMesh(bootstrap.Disk{Record: rec}); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			var looked atomic.Int32
			var there atomic.Bool
			came := transport.Peer{ID: transport.PeerID{2}, Name: "a1", Site: "a", State: transport.Alive}
			mesh := &fakeMesh{members: func() []transport.Peer {
				if looked.Add(1); there.Load() {
					return []transport.Peer{came}
				}
				return nil
			}}
			b, err := newBootstrapper(Config{Data: data, Name: "b1", Site: "b", Bootstrap: &Bootstrap{Names: rec.Names}}, nil, slog.New(slog.DiscardHandler), time.Now)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); b.run(ctx, mesh, "b1", "b") }()
			time.Sleep(3 * bootstrapTick)
			b.stands.Store(true)
			time.Sleep(2 * bootstrapTick)
			before := looked.Load()
			time.Sleep(time.Minute)
			if n := looked.Load() - before; n > 6 {
				t.Errorf("it has looked %d times in a minute in which nothing happened, want 6 at most", n)
			}
			there.Store(!late)
			if err := b.take(crdt.NodeID(came.ID), bootstrap.Message{Kind: 1, Name: "a1", Names: rec.Names, Nonce: 7}.Append(nil)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if late {
				there.Store(true)
				time.Sleep(standingTick)
				synctest.Wait()
			}
			if got := b.returned(); got != crdt.NodeID(came.ID) {
				t.Errorf("late %v: it takes %v for the minter that is back, want %v", late, got, came.ID)
			}
			cancel()
			<-done
		})
		data.Close()
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
