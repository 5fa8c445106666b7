package dashboard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/browsertest"
)

// TestBrowserJudges every state of rooms and nodes, in the page's own code.
func TestBrowserJudges(t *testing.T) {
	_, b := look(t, newFakeMesh(1, 3, 2), "#/nodes")
	judge := func(f func(*Snapshot)) string {
		t.Helper()
		snap := newFakeMesh(1, 2, 3).Snapshot(time.Now())
		r := &snap.Rooms[0]
		r.Waiting, r.Active, r.AdmittedPerMinute, r.WaitSeconds = 0, 10, 10, nil
		f(&snap)
		in, err := json.Marshal(snap)
		if err != nil {
			t.Fatal(err)
		}
		// The mesh is looked at twice, with two minutes between.
		got := browsertest.See[[]string](b.Tab, fmt.Sprintf(`Promise.all([import('./model.js'), import('./health.js')]).then(([{Model, meshKeys}, health]) => {
			const mesh = new Model(meshKeys), now = Date.now, id = %q
			mesh.snapshot(%s)
			health.watch(mesh, now() - 120000)
			health.watch(mesh, now())
			const said = health.findings(mesh).map(f => f.level + ': ' + f.what)
			return [health.roomState(mesh.lists.rooms.get(id)).label, health.nodeState(mesh.lists.nodes.get(%q)).label, ...said]
		})`, r.ID, in, snap.Nodes[1].Node))
		return strings.Join(got, "|")
	}
	for _, c := range []struct {
		want string
		f    func(r *Room, n *Node, s *Snapshot)
	}{
		{"Open|Alive", func(*Room, *Node, *Snapshot) {}},
		{"Queueing|Alive", func(r *Room, _ *Node, _ *Snapshot) { r.Waiting = 5 }},
		{"Open|Alive|bad: A site is down: no origin is healthy", func(_ *Room, n *Node, _ *Snapshot) {
			n.Origins = []Origin{{URL: "http://a", State: "trial", SiteDown: true}}
		}},
		{"Open|Alive|warn: An origin is out", func(_ *Room, n *Node, _ *Snapshot) {
			n.Origins = []Origin{{URL: "http://a", State: "ejected"}, {URL: "http://b", State: "in"}}
		}},
		{"Open|Alive|warn: An origin fails", func(_ *Room, n *Node, _ *Snapshot) {
			n.Origins = []Origin{{URL: "http://a", State: "in", Requests: 10, ErrorRate: 0.5}}
		}},
		{"Open|Alive|warn: An origin is slow", func(_ *Room, n *Node, _ *Snapshot) {
			n.Origins = []Origin{{URL: "http://a", State: "in", Requests: 10, P50: 6 * time.Second}}
		}},
		{"Open|Alive", func(_ *Room, n *Node, _ *Snapshot) {
			n.Origins = []Origin{{URL: "http://a", State: "in", Requests: 1, ErrorRate: 1}}
		}},
		{"Stuck|Alive|bad: Nobody gets in though there is room", func(r *Room, _ *Node, _ *Snapshot) { r.Waiting, r.AdmittedPerMinute = 5, 0 }},
		{"Queueing|Alive", func(r *Room, _ *Node, _ *Snapshot) {
			r.Waiting, r.AdmittedPerMinute, r.Active = 5, 0, r.TotalActiveUsers
		}},
		{"Queue all|Alive|warn: A room holds everybody: queue all is on", func(r *Room, _ *Node, _ *Snapshot) { r.QueueAll, r.Waiting, r.AdmittedPerMinute = true, 5, 0 }},
		{"Suspended|Alive|note: 1 room is suspended", func(r *Room, _ *Node, _ *Snapshot) { r.Suspended = true }},
		{"Pre-queue|Alive|note: 1 room is in a pre-queue", func(r *Room, _ *Node, _ *Snapshot) {
			r.Event, r.Waiting, r.AdmittedPerMinute = &Event{Prequeueing: true}, 9, 0
		}},
		{"Event|Alive", func(r *Room, _ *Node, _ *Snapshot) { r.Event = &Event{Active: true} }},
		{"Rejecting|Alive|note: 1 room rejects everybody", func(r *Room, _ *Node, _ *Snapshot) { r.QueueingMethod = "reject" }},
		{"Counting|Alive", func(r *Room, _ *Node, _ *Snapshot) { r.QueueingMethod = "passthrough" }},
		{"Not minted|Alive|bad: The capacity of a room was never minted: nobody is let in", func(r *Room, _ *Node, _ *Snapshot) { r.Rights = &Rights{} }},
		{"Open|Alive|warn: A room counts more visitors than its limit", func(r *Room, _ *Node, _ *Snapshot) { r.Active = r.TotalActiveUsers*103/100 + 1 }},
		{"Open|Alive|note: 1 room is following a lower limit", func(r *Room, _ *Node, _ *Snapshot) { r.Rights.Minted.Places++; r.Active = r.Rights.Minted.Places }},
		{"Open|Alive|warn: A room has borrowed sessions", func(r *Room, _ *Node, _ *Snapshot) { r.Rights.Borrowed = 1 }},
		{"Queueing|Alive|warn: A wait is longer than an hour", func(r *Room, _ *Node, _ *Snapshot) { r.Waiting, r.WaitSeconds = 5, new(int64(3601)) }},
		{"Open|Failed|bad: A node does not answer", func(_ *Room, n *Node, _ *Snapshot) { n.State = "failed" }},
		{"Open|Failed|bad: 2 nodes do not answer", func(_ *Room, n *Node, s *Snapshot) { n.State, s.Nodes[2].State = "failed", "failed" }},
		{"Open|Failed|bad: A node is down, and nobody can use its capacity", func(_ *Room, n *Node, s *Snapshot) {
			n.State = "failed"
			s.Down = []Down{{Node: n.Node, Name: n.Name, State: "down", Rooms: []DownRoom{}, Message: n.Name + " is down: 102 of 240 capacity unusable"}}
		}},
		{"Open|Alive|warn: The capacity of a dead node is being recovered", func(_ *Room, _ *Node, s *Snapshot) {
			s.Down = []Down{{Node: "x", Name: "b1", State: "recovering", Rooms: []DownRoom{}, Message: "recovering b1's 102 of 240 capacity: usable in 34 s"}}
		}},
		{"Open|Left", func(_ *Room, n *Node, _ *Snapshot) { n.State, n.Ready = "left", false }},
		{"Open|No tickets: disk|bad: A node lets nobody in: its disk", func(_ *Room, n *Node, _ *Snapshot) { n.Store = "full" }},
		{"Open|No tickets: clock|bad: A node lets nobody in: its clock is off", func(_ *Room, n *Node, _ *Snapshot) { n.Clock = "off" }},
		{"Open|Not ready|warn: A node is not ready", func(_ *Room, n *Node, _ *Snapshot) { n.Ready = false }},
		{"Open|Leaving|note: 1 node is leaving", func(_ *Room, n *Node, _ *Snapshot) { n.Leaving, n.Ready = true, false }},
		{"Open|Alive|note: 2 versions run", func(_ *Room, n *Node, _ *Snapshot) { n.Version = "1" }},
		{"Open|Alive|bad: A site is silent", func(_ *Room, _ *Node, s *Snapshot) {
			s.Sites = slices.Clone(s.Sites)
			s.Sites[1].Silent = new(time.Now().Add(-time.Minute))
		}},
		{"Open|Alive|bad: An event is left out: it cannot be beside the rest", func(r *Room, _ *Node, s *Snapshot) {
			s.Refused = []Refused{{Room: r.ID, Name: r.Name, Event: "sale", Reason: "another one takes the time"}}
		}},
		{"Open|Alive|bad: A rate limit is left out: it cannot be beside the rest", func(_ *Room, _ *Node, s *Snapshot) {
			s.Refused = []Refused{{Limit: "logins", Reason: "an older rate limit is called so, too"}}
		}},
		{"Open|Alive|warn: A node has too little memory for rate limits", func(_ *Room, n *Node, _ *Snapshot) {
			n.Limits = &LimitMemory{Room: 9, Keys: 9, Replaced: 7, ReplacedLately: 1}
		}},
		{"Open|Failed|bad: A node does not answer", func(_ *Room, n *Node, _ *Snapshot) {
			n.State, n.Limits = "failed", &LimitMemory{Room: 9, Keys: 9, Replaced: 7, ReplacedLately: 1}
		}},
		{"Open|Alive", func(_ *Room, n *Node, _ *Snapshot) { n.Limits = &LimitMemory{Room: 9, Keys: 9, Replaced: 7} }},
		{"Open|Alive|bad: 2 rooms, or parts of them, are left out: they cannot be beside the rest", func(r *Room, _ *Node, s *Snapshot) {
			s.Refused = []Refused{{Room: r.ID, Name: r.Name, Reason: "no page"}, {Room: "x", Name: "y", Reason: "another one stands there"}}
		}},
	} {
		if got := judge(func(s *Snapshot) { c.f(&s.Rooms[0], &s.Nodes[1], s) }); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	b.wantNothingWrong()
}
