package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ropeline/ropeline/httpfront/browsertest"
	"github.com/ropeline/ropeline/node"
)

// TestBrowserRunsAMeshFromItsDashboard signs in at one node of a mesh, changes a limit, is
// refused another, holds everybody, and plans an event: other nodes have it all.
func TestBrowserRunsAMeshFromItsDashboard(t *testing.T) {
	ctx := newBrowser(t)
	const token = "writing-0123456789"
	nodes := serveMesh(t, startOrigin(t), []string{"a", "b"}, "--host", "shop.example")
	get(t, nodes[1].http, nil)
	s, err := nodes[0].status()
	if err != nil {
		t.Fatal(err)
	}
	d := &browsertest.Tab{T: t, Ctx: ctx}
	d.Do(chromedp.Navigate("http://" + nodes[0].admin + "/"))
	d.Shows("main", "default")
	d.Shows("main", "shop.example")
	d.Keep("dashboard rooms")
	d.Run(fmt.Sprintf("location.hash = '#/rooms/%s'", s.Rooms[0].ID))
	d.Awaits("(document.querySelector('#total_active_users')?.value ?? '') === '200'")

	d.Fill("#total_active_users", "0")
	d.Click(".settings button", "Change limits …")
	d.Click("dialog button.primary", "Change limits")
	d.Shows("#total_active_users-error", "1 to 2")
	d.Fill("#total_active_users", "321")
	d.Click(".settings button", "Change limits …")
	d.Click("dialog button.primary", "Change limits")
	at := func(what string, is func(r node.RoomStatus) bool) {
		t.Helper()
		nodes[1].await(what, 10*time.Second, func(s node.Status) bool { return len(s.Rooms) == 1 && is(s.Rooms[0]) })
	}
	at("has the limit", func(r node.RoomStatus) bool { return r.TotalActiveUsers == 321 })
	d.Click(".settings button", "Hold everybody …")
	d.Click("dialog button.primary", "Hold everybody")
	at("holds everybody", func(r node.RoomStatus) bool { return r.QueueAll })
	d.Shows(".view.room .badge", "Queue all")

	d.Click("button", "Plan an event …")
	d.Fill("#event-name", "spring-sale")
	d.Fill("#event-event_start_time", "2031-03-20T18:00")
	d.Fill("#event-event_end_time", "2031-03-20T23:00")
	d.Click("dialog.event button.primary", "Plan the event …")
	d.Click("dialog:not(.event) button.primary", "Plan the event")
	d.Shows(".events", "spring-sale")
	await(t, "the other node has the event", func() bool {
		code, got := nodes[1].api("GET", "/api/v1/rooms/default/events", "")
		return code == 200 && len(items(got)) == 1 && items(got)[0]["name"] == "spring-sale"
	})
	d.Keep("dashboard room")
	d.Run("location.hash = '#/mesh'")
	d.Shows("main", nodes[1].name)
	d.Shows("main", "ms")
	d.Keep("dashboard mesh")
	if said := d.Text("body"); strings.Contains(said, "undefined") || strings.Contains(said, "NaN") {
		t.Errorf("the page says\n%s", said)
	}
	signsIn(t, d, token)
}

// signsIn opens the dashboard of a node that wants tokens.
func signsIn(t *testing.T, d *browsertest.Tab, token string) {
	t.Helper()
	t.Setenv(tokenVariable, token)
	p := serveNode(t, "closed", "one", "--origin", startOrigin(t), "--data-dir", t.TempDir())
	await(t, "the node answers", func() bool {
		_, code := says(t, t.Context(), "http://"+p.admin, "health")
		return code == 0
	})
	d.Do(chromedp.Navigate("http://" + p.admin + "/"))
	d.Fill("input[type=password]", token)
	d.Click("form button", "")
	d.Shows("main", "default")
}
