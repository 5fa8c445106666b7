package dashboard

import (
	"fmt"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/browsertest"
)

// wide returns how many pixels the page is wider than the window.
const wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

// troubled is a mesh in which much is wrong at a time.
func troubled() *fakeMesh {
	f := newFakeMesh(2, 24, 12)
	f.change(func(f *fakeMesh) {
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
		rooms[11].Rights.Minted = Amount{}
		rooms[11].Rights.Minter = ""
		rooms[12].Rights.Borrowed = 31
		rooms[14].TotalActiveUsers /= 2
		f.snap.Limits[0].Limited, f.snap.Limits[2].Limited = OverNodes{14, 48}, OverNodes{3, 3}
		f.snap.Limits[1].State = LimitLeftOut
		f.snap.Refused = []Refused{{Limit: "searches", Reason: "an older rate limit is called \"searches\", too; give one of them another name"}}
		nodes[4].Limits = &LimitMemory{Bytes: 1 << 20, Room: 28_600, Keys: 28_590, Replaced: 80_211, ReplacedLately: 12_345}
		nodes[6].Limits = nil // of an older version
	})
	return f
}

// wellAndBusy is a mesh of many rooms in which all is as it should be.
func wellAndBusy() *fakeMesh {
	f := newFakeMesh(1, 200, 12)
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
	meshes := map[string]*fakeMesh{"well": wellAndBusy(), "troubled": troubled()}
	for _, l := range []struct {
		name string
		set  func(*tab)
		only string // mesh; "": both
	}{
		{"light", func(b *tab) { b.Sized(1360, 1000, false) }, ""},
		{"dark", func(b *tab) { b.Sized(1360, 1000, false); b.Likes("prefers-color-scheme", "dark") }, ""},
		{"phone", func(b *tab) { b.Sized(360, 1400, true) }, ""},
		{"tablet", func(b *tab) { b.Sized(820, 1100, true) }, "troubled"},
		{"forced colours", func(b *tab) { b.Likes("forced-colors", "active", "prefers-color-scheme", "dark") }, "troubled"},
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
						if n := browsertest.See[int](b.Tab, wide); n > 0 {
							t.Errorf("the page is %d pixels wider than the window", n)
						}
						b.settle(fmt.Sprintf("%s %s %s", view, name, l.name))
						b.wantNothingWrong()
						if l.name != "tablet" {
							b.CheckAccess()
						}
					})
				}
			}
		})
	}
}
