package dashboard

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/ropeline/ropeline/httpfront/browsertest"
)

// openRoom opens the first room of a mesh.
func openRoom(t *testing.T) (*stage, *tab) {
	t.Helper()
	mesh := newFakeMesh(1, 12, 4)
	s, b := look(t, mesh, "#/rooms/"+mesh.snap.Rooms[0].ID)
	b.Awaits("(document.querySelector('#total_active_users')?.value ?? '') !== ''")
	return s, b
}

// TestBrowserShowsWhatIsRefused by the field that it is about, and leaves what was
// written.
func TestBrowserShowsWhatIsRefused(t *testing.T) {
	s, b := openRoom(t)
	before := s.mesh.first().TotalActiveUsers
	for value, want := range map[string]string{
		"0": "total_active_users is 0; allowed is 1 to 2,147,483,647", "3000000000": "allowed is 1 to 2,147,483,647",
		"many": "total_active_users is many", "": "allowed is 1 to",
	} {
		b.Fill("#total_active_users", value)
		b.Click(".settings button", "Change limits …")
		b.Click("dialog button.primary", "Change limits")
		b.Shows("#total_active_users-error", want)
		b.Finds("the field that has the focus", "document.activeElement.id + document.activeElement.getAttribute('aria-invalid')", "total_active_userstrue")
		b.Finds("what is left of what was written", "document.querySelector('#total_active_users').value", value)
	}
	b.settle("refused")
	b.CheckAccess()
	b.Click(".settings button", "Undo")
	b.Finds("what is undone", "document.querySelector('#total_active_users').value", fmt.Sprint(before))
	b.wantNothingWrong()
}

// TestBrowserKeepsWhatIsWritten while the room changes.
func TestBrowserKeepsWhatIsWritten(t *testing.T) {
	s, b := openRoom(t)
	b.Fill("#total_active_users", "777")
	s.mesh.changeDetail(s.room(), func(d *Detail) { d.Settings = Settings{5000, 123} })
	b.Awaits("document.querySelector('#new_users_per_minute').value === '123'")
	b.Finds("what was being written", "document.querySelector('#total_active_users').value", "777")
	b.Click(".settings button", "Change limits …")
	b.Shows("dialog .before", "5,000")
	b.Shows("dialog .after", "777")
	b.Click("dialog button", "Leave it as it is")
	b.Awaits("!document.querySelector('dialog')")

	// An event overrides the settings for a time, and leaves them as they are.
	s.mesh.change(func(f *fakeMesh) {
		r := &f.snap.Rooms[0]
		r.TotalActiveUsers, r.NewUsersPerMinute, r.Event = 9999, 888, &Event{Name: "Spring sale", Active: true}
	})
	b.Shows(".settings", "Spring sale", "9,999", "888")
	b.Finds("the room's own setting, under an event,", "document.querySelector('#new_users_per_minute').value", "123")
}

func TestBrowserHoldsEverybody(t *testing.T) {
	s, b := openRoom(t)
	for i, step := range []struct{ button, sends, title string }{
		{"Hold everybody …", "queue_all:true", "Queue all"},
		{"Let people in again …", "queue_all:false", ""},
		{"Suspend …", "suspended:true", "Suspended"},
		{"Put the room back …", "suspended:false", ""},
	} {
		b.Click(".settings button", step.button)
		b.Shows("dialog", "Now", "Will be")
		if i == 0 {
			b.CheckAccess()
			b.settle("hold everybody")
		}
		b.Click("dialog button.primary", step.button[:len(step.button)-len(" …")])
		s.wantEdit(i+1, "PATCH /api/v1/rooms/"+s.room()+" map["+step.sends+"]")
		b.Awaits("!document.querySelector('dialog')")
		if step.title != "" {
			b.Shows(".view.room .badge", step.title)
		}
	}
	b.wantNothingWrong()
}

// TestBrowserMayOnlyLook with a token that is for that alone.
func TestBrowserMayOnlyLook(t *testing.T) {
	s, b := openRoom(t)
	s.allow(looks)
	b.Click(".settings button", "Suspend …")
	b.Click("dialog button.primary", "Suspend")
	b.Shows("dialog .wrong", "needs the scope write")
	b.press(kb.Escape)
	b.Awaits("!document.querySelector('dialog')")
	s.wantEdit(0)
}

func TestBrowserPlansEvents(t *testing.T) {
	s, b := openRoom(t)
	b.Shows(".view.room", "None is planned")
	b.Click("button", "Plan an event …")
	b.Fill("#event-name", "Spring sale")
	b.Fill("#event-event_start_time", "2027-03-20T18:00")
	b.Fill("#event-event_end_time", "2027-03-20T17:00")
	b.Fill("#event-total_active_users", "5,000")
	b.CheckAccess()
	send := func(open, confirm string) {
		b.Click("dialog.event button.primary", open)
		b.Click("dialog:not(.event) button.primary", confirm)
	}
	send("Plan the event …", "Plan the event")
	b.Shows("#event-event_end_time-error", "is not after event_start_time")
	b.settle("event refused")
	b.Fill("#event-event_end_time", "2027-03-20T23:30")
	send("Plan the event …", "Plan the event")
	b.Shows(".events", "Spring sale", "Planned", "total active users 5,000")
	start := browsertest.See[string](b.Tab, "new Date('2027-03-20T18:00').toISOString()")
	s.wantEdit(2, "POST ", "event_start_time:"+start, "total_active_users:5000]") // the first was refused

	b.Click(".events button", "Edit …")
	b.Fill("#event-name", "Summer sale")
	send("Change the event …", "Change the event")
	b.Shows(".events", "Summer sale")
	s.wantEdit(3, "PATCH /api/v1/rooms/"+s.room()+"/events/event-1 map[name:Summer sale]")

	b.Click(".events button", "Delete …")
	b.Shows("dialog", "Summer sale", "deleted")
	b.Click("dialog button.primary", "Delete the event")
	b.Shows(".view.room", "None is planned")
	s.wantEdit(4, "DELETE ")
	b.wantNothingWrong()
}

// TestBrowserFollowsARoom: its queue, its chart, and its end.
func TestBrowserFollowsARoom(t *testing.T) {
	s, b := openRoom(t)
	b.Awaits("!!document.querySelector('.turn')?.getAttribute('d')")
	b.Shows(".queue", "The oldest came 2", " min ago", "about")
	b.Run("document.querySelector('.queue summary').click()")
	b.Awaits("document.querySelectorAll('.queue tbody tr').length === 24")
	b.Shows(".queue tbody", "now", "in part", "later")
	b.Awaits("document.querySelectorAll('.plot canvas').length === 2")
	b.Run("document.querySelector('.charts summary').click()")
	b.Awaits("document.querySelectorAll('.charts tbody tr').length >= 29")
	for _, span := range []string{"24 h", "1 h"} {
		b.Click(".charts button", span)
		b.Awaits(fmt.Sprintf("document.querySelector('.charts [aria-pressed=true]').textContent === %q", span))
	}
	s.mesh.changeDetail(s.room(), func(d *Detail) { d.Buckets, d.Cursor, d.Time = []Bucket{}, nil, time.Now() })
	b.Shows(".queue", "Nobody waits")
	s.mesh.change(func(f *fakeMesh) { f.snap.Rooms = f.snap.Rooms[1:] })
	b.Shows("main", "There is no such room")
	b.wantNothingWrong()
}

// TestBrowserShowsANode on the map, when it is chosen.
func TestBrowserShowsANode(t *testing.T) {
	s, b := look(t, newFakeMesh(1, 12, 12), "#/mesh")
	b.Awaits("document.querySelectorAll('.map line').length === 6")
	b.Click(".place button", "iad-2")
	b.Shows(".picked", "iad-2 in iad", "17,500 places", "Nearest")
	b.Awaits("document.querySelectorAll('.map line[data-faint]').length === 3")
	b.settle("a node on the map")
	b.CheckAccess()
	s.mesh.change(func(f *fakeMesh) {
		for i := range f.snap.Nodes {
			if f.snap.Nodes[i].Site == "iad" {
				f.snap.Nodes[i].State = "failed"
			}
		}
	})
	b.Awaits("document.querySelectorAll('.map line[data-cut]').length === 3")
	b.Shows(".times", "cut off")
	b.wantNothingWrong()
}
