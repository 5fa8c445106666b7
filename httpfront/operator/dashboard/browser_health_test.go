package dashboard

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/browsertest"
)

// judged is a mesh of which a room, a node, or something about all of it is judged.
type judged struct {
	*Room
	node *Node
	all  *Snapshot
}

func (m *judged) origins(all ...Origin) {
	for i := range all {
		all[i].URL = fmt.Sprintf("http://%d", i)
	}
	m.node.Origins = all
}

func (m *judged) down(d Down) {
	d.Rooms = []DownRoom{}
	m.all.Down = []Down{d}
}

func (m *judged) refused(all ...Refused) { m.all.Refused = all }

var tooLittle = &LimitMemory{Room: 9, Keys: 9, Replaced: 7, ReplacedLately: 1}

// TestBrowserJudges every state of rooms and nodes, in the page's own code.
func TestBrowserJudges(t *testing.T) {
	_, b := look(t, newFakeMesh(1, 3, 2), "#/nodes")
	for _, c := range []struct {
		want string
		f    func(m *judged)
	}{
		{"Open|Alive", func(*judged) {}},
		{"Queueing|Alive", func(m *judged) { m.Waiting = 5 }},
		{"Open|Alive|bad: A site is down: no origin is healthy", func(m *judged) { m.origins(Origin{State: "trial", SiteDown: true}) }},
		{"Open|Alive|warn: An origin is out", func(m *judged) { m.origins(Origin{State: "ejected"}, Origin{State: "in"}) }},
		{"Open|Alive|warn: An origin fails", func(m *judged) { m.origins(Origin{State: "in", Requests: 10, ErrorRate: 0.5}) }},
		{"Open|Alive|warn: An origin is slow", func(m *judged) { m.origins(Origin{State: "in", Requests: 10, P50: 6 * time.Second}) }},
		{"Open|Alive", func(m *judged) { m.origins(Origin{State: "in", Requests: 1, ErrorRate: 1}) }},
		{"Stuck|Alive|bad: Nobody gets in though there is room", func(m *judged) { m.Waiting, m.AdmittedPerMinute = 5, 0 }},
		{"Queueing|Alive", func(m *judged) { m.Waiting, m.AdmittedPerMinute, m.Active = 5, 0, m.TotalActiveUsers }},
		{"Queue all|Alive|warn: A room holds everybody: queue all is on", func(m *judged) { m.QueueAll, m.Waiting, m.AdmittedPerMinute = true, 5, 0 }},
		{"Suspended|Alive|note: 1 room is suspended", func(m *judged) { m.Suspended = true }},
		{"Pre-queue|Alive|note: 1 room is in a pre-queue", func(m *judged) { m.Event, m.Waiting, m.AdmittedPerMinute = &Event{Prequeueing: true}, 9, 0 }},
		{"Event|Alive", func(m *judged) { m.Event = &Event{Active: true} }},
		{"Rejecting|Alive|note: 1 room rejects everybody", func(m *judged) { m.QueueingMethod = "reject" }},
		{"Counting|Alive", func(m *judged) { m.QueueingMethod = "passthrough" }},
		{"Not minted|Alive|bad: The capacity of a room was never minted: nobody is let in", func(m *judged) { m.Rights = &Rights{} }},
		{"Open|Alive|warn: A room counts more visitors than its limit", func(m *judged) { m.Active = m.TotalActiveUsers*103/100 + 1 }},
		{"Open|Alive|note: 1 room is following a lower limit", func(m *judged) {
			m.Rights.Minted.Places++
			m.Active = m.Rights.Minted.Places
		}},
		{"Open|Alive|warn: A room has borrowed sessions", func(m *judged) { m.Rights.Borrowed = 1 }},
		{"Queueing|Alive|warn: A wait is longer than an hour", func(m *judged) { m.Waiting, m.WaitSeconds = 5, new(int64(3601)) }},
		{"Open|Failed|bad: A node does not answer", func(m *judged) { m.node.State = "failed" }},
		{"Open|Failed|bad: 2 nodes do not answer", func(m *judged) { m.node.State, m.all.Nodes[2].State = "failed", "failed" }},
		{"Open|Failed|bad: A node is down, and nobody can use its capacity", func(m *judged) {
			m.node.State = "failed"
			m.down(Down{Node: m.node.Node, Name: m.node.Name, State: "down", Message: m.node.Name + " is down: 102 of 240 capacity unusable"})
		}},
		{"Open|Alive|warn: The capacity of a dead node is being recovered", func(m *judged) {
			m.down(Down{Node: "x", Name: "b1", State: "recovering", Message: "recovering b1's 102 of 240 capacity: usable in 34 s"})
		}},
		{"Open|Left", func(m *judged) { m.node.State, m.node.Ready = "left", false }},
		{"Open|No tickets: disk|bad: A node lets nobody in: its disk", func(m *judged) { m.node.Store = "full" }},
		{"Open|No tickets: clock|bad: A node lets nobody in: its clock is off", func(m *judged) { m.node.Clock = "off" }},
		{"Open|Not ready|warn: A node is not ready", func(m *judged) { m.node.Ready = false }},
		{"Open|Leaving|note: 1 node is leaving", func(m *judged) { m.node.Leaving, m.node.Ready = true, false }},
		{"Open|Alive|note: 2 versions run", func(m *judged) { m.node.Version = "1" }},
		{"Open|Alive|bad: A site is silent", func(m *judged) { m.all.Sites[1].Silent = new(time.Now().Add(-time.Minute)) }},
		{"Open|Alive|bad: An event is left out: it cannot be beside the rest", func(m *judged) { m.refused(Refused{Room: m.ID, Name: m.Name, Event: "sale"}) }},
		{"Open|Alive|bad: A rate limit is left out: it cannot be beside the rest", func(m *judged) { m.refused(Refused{Limit: "logins"}) }},
		{"Open|Alive|bad: 2 rooms, or parts of them, are left out: they cannot be beside the rest", func(m *judged) {
			m.refused(Refused{Room: m.ID, Name: m.Name}, Refused{Room: "x", Name: "y"})
		}},
		{"Open|Alive|warn: A node has too little memory for rate limits", func(m *judged) { m.node.Limits = tooLittle }},
		{"Open|Failed|bad: A node does not answer", func(m *judged) { m.node.State, m.node.Limits = "failed", tooLittle }},
		{"Open|Alive", func(m *judged) { m.node.Limits = &LimitMemory{Room: 9, Keys: 9, Replaced: 7} }},
	} {
		snap := newFakeMesh(1, 2, 3).Snapshot(time.Now())
		m := &judged{Room: &snap.Rooms[0], node: &snap.Nodes[1], all: &snap}
		m.Waiting, m.Active, m.AdmittedPerMinute, m.WaitSeconds = 0, 10, 10, nil
		c.f(m)
		// The mesh is looked at twice, with two minutes between.
		got := browsertest.See[[]string](b.Tab, fmt.Sprintf(`Promise.all([import('./model.js'), import('./health.js')]).then(([{Model, meshKeys}, health]) => {
			const mesh = new Model(meshKeys), now = Date.now, id = %q
			mesh.snapshot(%s)
			health.watch(mesh, now() - 120000)
			health.watch(mesh, now())
			const said = health.findings(mesh).map(f => f.level + ': ' + f.what)
			return [health.roomState(mesh.lists.rooms.get(id)).label, health.nodeState(mesh.lists.nodes.get(%q)).label, ...said]
		})`, m.ID, must(json.Marshal(snap)), m.node.Node))
		if got := strings.Join(got, "|"); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	b.wantNothingWrong()
}
