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

// troubled is a mesh in which much is wrong at a time.
func troubled() *fakeMesh {
	f := newFakeMesh(2, 24, 12)
	rooms, nodes := f.snap.Rooms, f.snap.Nodes
	nodes[5].State = "failed"
	f.snap.Down = []Down{
		{
			Node: nodes[5].Node, Name: nodes[5].Name, Site: nodes[5].Site, State: "down", Since: time.Now(), Order: nodes[5].Name, Rooms: []DownRoom{{Name: "exam-012", Capacity: Amount{Places: 102, Rate: 510}, Minted: Amount{Places: 240, Rate: 1200}}},
			Message: nodes[5].Name + " is down: 102 of 240 capacity unusable; start it again, or declare it dead: ropeline node declare-dead " + nodes[5].Name + " --gone-for-good",
		},
		{
			Node: "x", Name: "lost-1", Site: nodes[5].Site, State: "recovering", Since: time.Now(), Order: "lost-1", Rooms: []DownRoom{},
			Message: "recovering lost-1's 64 of 240 capacity: usable in 34 s",
		},
	}
	nodes[2].Store, nodes[2].Reason = "disk full: 3 MiB left of 20 GiB", "no tickets"
	nodes[7].Ready, nodes[7].Reason = false, "takes the state of its site from a neighbour"
	nodes[8].Leaving = true
	nodes[1].Version = "0.9.1"
	f.snap.Sites[3].Silent, f.snap.Sites[3].Frozen = new(time.Now().Add(-4*time.Minute)), true
	for i := range nodes {
		if nodes[i].Site == "syd" {
			nodes[i].State = "failed"
		}
	}
	rooms[3].QueueAll, rooms[3].Waiting = true, 812
	rooms[4].Suspended = true
	rooms[6].Event = &Event{ID: "e", Name: "Spring sale", Prequeueing: true, Start: time.Now().Add(9 * time.Minute), End: time.Now().Add(time.Hour)}
	rooms[9].Waiting, rooms[9].WaitSeconds = 21400, new(int64(2*3600+600))
	rooms[11].Rights.Minted, rooms[11].Rights.Minter = Amount{}, ""
	rooms[12].Rights.Borrowed = 31
	rooms[14].TotalActiveUsers /= 2
	f.snap.Limits[0].Limited, f.snap.Limits[2].Limited = OverNodes{14, 48}, OverNodes{3, 3}
	f.snap.Limits[1].State = LimitLeftOut
	f.snap.Refused = []Refused{{Limit: "searches", Reason: "an older rate limit is called \"searches\", too; give one of them another name"}}
	nodes[4].Limits = &LimitMemory{Bytes: 1 << 20, Room: 28_600, Keys: 28_590, Replaced: 80_211, ReplacedLately: 12_345}
	nodes[6].Limits = nil // of an older version
	return f
}

// wellAndBusy is a mesh of rooms in which all is as it should be.
func wellAndBusy(rooms int) *fakeMesh {
	f := newFakeMesh(1, rooms, 12)
	at := time.Now().Truncate(time.Hour)
	f.changeDetail(f.snap.Rooms[0].ID, func(d *Detail) {
		d.Events = []Event{
			{ID: "event-1", Name: "Spring sale", Shuffle: true, PrequeueStart: new(at.Add(20 * time.Hour)), Start: at.Add(21 * time.Hour), End: at.Add(27 * time.Hour), TotalActiveUsers: 5000, NewUsersPerMinute: 900},
			{ID: "event-2", Name: "Members first", Start: at.Add(-time.Hour), End: at.Add(time.Hour), Active: true},
		}
	})
	return f
}

// TestBrowserLooks opens every view in the ways that people look at it, checks what a
// program can check, and keeps pictures of the rest.
func TestBrowserLooks(t *testing.T) {
	browser := newBrowser(t)
	meshes := map[string]*fakeMesh{"well": wellAndBusy(30), "troubled": troubled()}
	all, colours := (*browsertest.Tab).CheckAccess, (*browsertest.Tab).CheckColours
	for _, l := range []struct {
		name  string
		set   func(*tab)
		check func(*browsertest.Tab)
		only  string // mesh; "": both
	}{
		{"light", func(b *tab) { b.Sized(1360, 1000, false) }, all, ""},
		{"dark", func(b *tab) { b.Sized(1360, 1000, false); b.Likes("prefers-color-scheme", "dark") }, colours, ""},
		{"phone", func(b *tab) { b.Sized(360, 1400, true) }, all, ""},
		{"tablet", func(b *tab) { b.Sized(820, 1100, true); b.Likes("prefers-reduced-motion", "reduce") }, isStill, "troubled"},
		{"forced colours", func(b *tab) { b.Likes("forced-colors", "active", "prefers-color-scheme", "dark") }, colours, "troubled"},
	} {
		t.Run(l.name, func(t *testing.T) {
			for name, mesh := range meshes {
				if l.only != "" && l.only != name {
					continue
				}
				s := serve(t, mesh, nil)
				b := newTab(t, browser)
				b.signedIn(someToken)
				l.set(b)
				room := "#/rooms/" + mesh.snap.Rooms[0].ID
				for view, hash := range map[string]string{"rooms": "", "room": room, "limits": "#/limits", "mesh": "#/mesh", "nodes": "#/nodes"} {
					t.Run(name+" "+view, func(t *testing.T) {
						b := &tab{&browsertest.Tab{T: t, Ctx: b.Ctx}}
						b.open(s, hash)
						b.Awaits("document.querySelector('#main').innerText.length > 100")
						if view == "room" {
							b.Awaits("document.querySelectorAll('.plot canvas').length === 2 && !!document.querySelector('.turn')?.getAttribute('d')")
						}
						if n := browsertest.See[int](b.Tab, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); n > 0 {
							t.Errorf("the page is %d pixels wider than the window", n)
						}
						b.settle(fmt.Sprintf("%s %s %s", view, name, l.name))
						b.wantNothingWrong()
						l.check(b.Tab)
					})
				}
			}
		})
	}
}

// isStill checks that nothing moves before those whom movement makes ill.
func isStill(b *browsertest.Tab) {
	if n := browsertest.See[int](b, "document.getAnimations().length"); n != 0 {
		b.T.Errorf("%d things move", n)
	}
}

// TestBrowserShowsLimits: what each is and does, and whose memory is too small for them.
func TestBrowserShowsLimits(t *testing.T) {
	mesh := newFakeMesh(1, 3, 4)
	_, b := look(t, mesh, "#/limits")
	row := func(name string) string {
		return "[...document.querySelectorAll('.limits .body .row')].find(e => e.querySelector('.name b').textContent === '" + name + "')"
	}
	cells := func(name string) []string {
		t.Helper()
		b.Awaits("!!" + row(name))
		return browsertest.See[[]string](b.Tab, "[..."+row(name)+".children].map(e => [...e.children].length ? [...e.children].map(c => c.textContent).join('|') : e.textContent)")
	}
	wants := func(name string, want ...string) {
		t.Helper()
		if got := cells(name); !slices.Equal(got, want) {
			t.Errorf("%s has\n%q, want\n%q", name, got, want)
		}
	}
	wants("logins", "1", "Quiet", `logins|http.request.uri.path eq "/login" and http.request.method eq "POST"`, "5 in 1 min|by ip.src", "block|for 10 min", "the mesh",
		"3,120|8,320 in sum", "0|", "1.24 s of requests|at most 15")
	wants("scrapers", "3", "Quiet", "scrapers|true", "12,000 in 90 s|by ip.src, http.host", "log|until fewer come", "each site", "168,080|448,213 in sum", "0|", "1.24 s of requests|at most 36,000")
	wants("checkout", "4", "Disabled", `checkout|http.request.uri.path eq "/checkout"`, "250 in 1 s|all together", "block|until fewer come", "the mesh", "–|", "–|", "–|")
	b.Shows(".times", "fra-1", "Enough", "212,400", "1,800,000")

	mesh.change(func(f *fakeMesh) {
		f.snap.Limits[0].Limited, f.snap.Limits[2].Limited = OverNodes{2, 2}, OverNodes{1, 3}
		f.snap.Limits[1].State = LimitLeftOut
		f.snap.Limits[0].Most, f.snap.Limits[0].DelaySeconds = 0, 0
		f.snap.Refused = []Refused{{Limit: "searches", Reason: "another one is called so"}}
		f.snap.Nodes[1].Limits = nil
		f.snap.Nodes[2].Limits = &LimitMemory{Room: 500, Keys: 499, Replaced: 7, ReplacedLately: 3}
		f.snap.Limits = append(f.snap.Limits, Limit{ID: "f", Name: "unknown", Order: 5, Scope: "mesh", State: LimitCounts, Nodes: 1})
	})
	b.Awaits(row("logins") + ".innerText.includes('Limiting')")
	wants("logins", "1", "Limiting", `logins|http.request.uri.path eq "/login" and http.request.method eq "POST"`, "5 in 1 min|by ip.src", "block|for 10 min", "the mesh",
		"3,120|8,320 in sum", "2|", "nothing|one node counts")
	if got := cells("scrapers"); got[1] != "Logging" || got[7] != "1|3 in sum" {
		t.Errorf("scrapers has %q", got)
	}
	if got := cells("searches"); got[1] != "Left out" || got[6] != "–|" {
		t.Errorf("searches has %q", got)
	}
	wants("unknown", "5", "Quiet", "unknown|", "–|", "–|", "the mesh", "0|", "0|", "nothing|one node counts")
	b.Shows("#findings", "A rate limit is left out", "searches", "A node has too little memory for rate limits", "sin-1", "3 clients forgotten too early in 5 min")
	equal(t, "findings that lead here", browsertest.See[int](b.Tab, "document.querySelectorAll('#findings a[href=\"#/limits\"]').length"), 2)
	b.Shows(".found", "Counted by 3 of 4 nodes")
	b.Awaits("document.querySelector('.times tbody tr').innerText.includes('Too small')")
	b.Awaits("document.querySelectorAll('.times tbody tr').length === 3")

	b.Click(".limits .head button", "Limited")
	b.Awaits("document.querySelector('.limits .body .name b').textContent === 'logins'")
	mesh.change(func(f *fakeMesh) { f.snap.Limits = f.snap.Limits[:0] })
	b.Shows("main", "There is no rate limit")
	b.Awaits("document.querySelector('.times').hidden")
	b.wantNothingWrong()
}

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
		{"Open|Alive|warn: An origin fails", func(m *judged) { m.origins(Origin{State: "in", Requests: 3, ErrorRate: 1}) }},
		{"Open|Alive|warn: An origin is slow", func(m *judged) { m.origins(Origin{State: "in", Requests: 3, P50: 6 * time.Second}) }},
		{"Open|Alive", func(m *judged) { m.origins(Origin{State: "in", Requests: 2, ErrorRate: 1, P50: 4 * time.Second}) }},
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
		equal(t, "said", strings.Join(got, "|"), c.want)
	}
	b.wantNothingWrong()
}
