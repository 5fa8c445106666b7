package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ropeline/ropeline/node"
)

// dashboardTab is the dashboard of a real node, in a browser.
type dashboardTab struct {
	t   *testing.T
	ctx context.Context
}

func (d *dashboardTab) awaits(js string) {
	d.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if look(d.t, d.ctx, chromedp.Evaluate[bool](js)) {
			return
		}
	}
	keep(d.t, "dashboard stuck.png", look(d.t, d.ctx, chromedp.CaptureScreenshot()))
	d.t.Fatalf("never so: %s; the page says\n%s", js, look(d.t, d.ctx, chromedp.Evaluate[string]("document.body.innerText")))
}

func (d *dashboardTab) shows(selector, words string) {
	d.t.Helper()
	d.awaits(fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.innerText.includes(%q))", selector, words))
}

func (d *dashboardTab) click(selector, label string) {
	d.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%q)].find(e => e.textContent.includes(%q))", selector, label)
	d.awaits("!!" + find)
	look(d.t, d.ctx, chromedp.Evaluate[bool](find+".click() || true"))
}

func (d *dashboardTab) fill(selector, value string) {
	d.t.Helper()
	d.awaits(fmt.Sprintf("!!document.querySelector(%q)", selector))
	look(d.t, d.ctx, chromedp.Evaluate[bool](fmt.Sprintf(
		`(() => {const e = document.querySelector(%q); e.focus(); e.value = %q; e.dispatchEvent(new Event('input', {bubbles: true})); return true})()`, selector, value)))
}

// TestBrowserRunsAMeshFromItsDashboard signs in at one node of a mesh, changes a limit, is
// refused another, holds everybody, and plans an event: other nodes have it all.
func TestBrowserRunsAMeshFromItsDashboard(t *testing.T) {
	ctx := newBrowser(t)
	const token = "writing-0123456789"
	nodes := startMesh(t, startOrigin(t), []string{"a", "b"}, "--host", "shop.example")
	get(t, nodes[1].http, nil)
	s, err := nodes[0].status()
	if err != nil {
		t.Fatal(err)
	}
	d := &dashboardTab{t, ctx}
	if err := chromedp.Do(ctx, chromedp.Navigate("http://"+nodes[0].admin+"/")); err != nil {
		t.Fatal(err)
	}
	d.shows("main", "default")
	d.shows("main", "shop.example")
	keep(t, "dashboard rooms.png", look(t, ctx, chromedp.CaptureScreenshot()))
	look(t, ctx, chromedp.Evaluate[bool](fmt.Sprintf("(location.hash = '#/rooms/%s', true)", s.Rooms[0].ID)))
	d.awaits("(document.querySelector('#total_active_users')?.value ?? '') === '200'")

	d.fill("#total_active_users", "0")
	d.click(".settings button", "Change limits …")
	d.click("dialog button.primary", "Change limits")
	d.shows("#total_active_users-error", "1 to 2")
	d.fill("#total_active_users", "321")
	d.click(".settings button", "Change limits …")
	d.click("dialog button.primary", "Change limits")
	at := func(what string, is func(r node.RoomStatus) bool) {
		t.Helper()
		nodes[1].await(what, 10*time.Second, func(s node.Status) bool { return len(s.Rooms) == 1 && is(s.Rooms[0]) })
	}
	at("has the limit", func(r node.RoomStatus) bool { return r.TotalActiveUsers == 321 })
	d.click(".settings button", "Hold everybody …")
	d.click("dialog button.primary", "Hold everybody")
	at("holds everybody", func(r node.RoomStatus) bool { return r.QueueAll })
	d.shows(".view.room .badge", "Queue all")

	d.click("button", "Plan an event …")
	d.fill("#event-name", "spring-sale")
	d.fill("#event-event_start_time", "2031-03-20T18:00")
	d.fill("#event-event_end_time", "2031-03-20T23:00")
	d.click("dialog.event button.primary", "Plan the event …")
	d.click("dialog:not(.event) button.primary", "Plan the event")
	d.shows(".events", "spring-sale")
	await(t, "the other node has the event", func() bool {
		code, got := nodes[1].api("GET", "/api/v1/rooms/default/events", "")
		return code == 200 && len(items(got)) == 1 && items(got)[0]["name"] == "spring-sale"
	})
	keep(t, "dashboard room.png", look(t, ctx, chromedp.CaptureScreenshot()))
	look(t, ctx, chromedp.Evaluate[bool]("(location.hash = '#/mesh', true)"))
	d.shows("main", nodes[1].name)
	d.shows("main", "ms")
	keep(t, "dashboard mesh.png", look(t, ctx, chromedp.CaptureScreenshot()))
	if said := look(t, ctx, chromedp.Evaluate[string]("document.body.innerText")); strings.Contains(said, "undefined") || strings.Contains(said, "NaN") {
		t.Errorf("the page says\n%s", said)
	}
	signsIn(t, d, token)
}

// signsIn opens the dashboard of a node that wants tokens.
func signsIn(t *testing.T, d *dashboardTab, token string) {
	t.Helper()
	t.Setenv(tokenVariable, token)
	p := startNode(t, "closed", "one", "--origin", startOrigin(t), "--data-dir", t.TempDir())
	await(t, "the node answers", func() bool {
		_, code := says(t, t.Context(), "http://"+p.admin, "health")
		return code == 0
	})
	if err := chromedp.Do(d.ctx, chromedp.Navigate("http://"+p.admin+"/")); err != nil {
		t.Fatal(err)
	}
	d.fill("input[type=password]", token)
	d.click("form button", "")
	d.shows("main", "default")
}
