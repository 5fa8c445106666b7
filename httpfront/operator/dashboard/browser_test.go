package dashboard

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"pgregory.net/rapid"

	"github.com/ropeline/ropeline/httpfront/browsertest"
)

// TestBrowserModelIsTheMesh has the page's own code take in random courses.
func TestBrowserModelIsTheMesh(t *testing.T) {
	_, b := look(t, newFakeMesh(1, 3, 2), "")
	type followed struct {
		First, Last json.RawMessage
		Deltas      []json.RawMessage
	}
	var all []followed
	rapid.Check(t, func(t *rapid.T) {
		first, deltas, last := drawCourse(t).events()
		all = append(all, followed{first, last, deltas})
	})
	got := browsertest.See[[]json.RawMessage](b.Tab, fmt.Sprintf(`import('./model.js').then(({Model, meshKeys}) => %s.map(({First, Deltas}) => {
		const model = new Model(meshKeys)
		model.snapshot(First)
		for (const d of Deltas) model.delta(d)
		return model.whole()
	}))`, must(json.Marshal(all))))
	if len(got) != len(all) || len(all) < 50 {
		t.Fatalf("%d of %d courses came back", len(got), len(all))
	}
	for i, g := range got {
		if have, want := asMaps(g), asMaps(all[i].Last); !reflect.DeepEqual(have, want) {
			t.Fatalf("after %d deltas the page has\n%v\nand the snapshot is\n%v", len(all[i].Deltas), have, want)
		}
	}
}

// TestBrowserAsksNobodyElse watches the network through all views, and tries what the
// policy forbids.
func TestBrowserAsksNobodyElse(t *testing.T) {
	s, b := sitDown(t, newFakeMesh(1, 12, 4))
	var asked []string
	b.Do(browsertest.Call(network.Enable, network.EnableParams{}))
	for _, view := range []string{"", "#/rooms/" + s.room(), "#/limits", "#/mesh", "#/nodes"} {
		b.open(s, view)
		if strings.Contains(view, "rooms") {
			b.Awaits("document.querySelectorAll('.plot canvas').length === 2")
		}
		asked = append(asked, browsertest.See[[]string](b.Tab, "performance.getEntriesByType('resource').map(e => e.name)")...)
		b.wantNothingWrong()
	}
	if len(asked) < 40 {
		t.Errorf("only these requests were seen: %v", asked)
	}
	for _, url := range asked {
		if !strings.HasPrefix(url, s.url("/")) {
			t.Errorf("the page asks for %s", url)
		}
	}
	b.Finds("a request to another site", `fetch('https://example.org/').then(() => 'asked', () => 'refused')`, "refused")
	if !strings.Contains(strings.Join(browsertest.See[[]string](b.Tab, "wrong"), " "), "connect-src") {
		t.Error("it is not the policy that refused it")
	}
	b.Finds("markup in a string",
		`(() => { try { document.body.innerHTML = '<b>x</b>'; return 'written' } catch { return 'refused' } })()`, "refused")
	b.Finds("a script in an attribute",
		`(() => {
			try { document.body.setAttribute('onclick', 'self.done = 1'); document.body.click() } catch {}
			return self.done ? 'run' : 'refused'
		})()`, "refused")
}

// TestBrowserFollowsTheMesh without being loaded again.
func TestBrowserFollowsTheMesh(t *testing.T) {
	mesh := newFakeMesh(1, 12, 4)
	s, b := look(t, mesh, "")
	b.Shows("#health h1", "All is well")
	b.Shows("#live", "Live from fra-1")
	b.Awaits("document.querySelectorAll('.rooms .body .row').length === 12")
	mesh.change(func(f *fakeMesh) { f.snap.Nodes[2].State = "failed" })
	b.Shows("#health h1", "A node does not answer: sin-1")
	b.Awaits("document.getElementById('say').textContent.includes('sin-1')") // heard, too
	b.Awaits("document.title.startsWith('✕')")
	mesh.change(func(f *fakeMesh) { f.snap.Nodes[2].State = "alive" })
	b.Shows("#health h1", "All is well")
	// A link stays under the focus while the figure beside it changes.
	mesh.change(func(f *fakeMesh) { f.snap.Rooms[1].QueueAll, f.snap.Rooms[1].Waiting = true, 5 })
	b.Shows("#findings", "drops-002 (5 wait)")
	b.Run("document.querySelector('#findings a').focus()")
	mesh.change(func(f *fakeMesh) { f.snap.Rooms[1].Waiting = 6 })
	b.Shows("#findings", "drops-002 (6 wait)")
	b.Finds("what has the focus after a change beside it", focused, "drops-002")
	mesh.change(func(f *fakeMesh) { f.snap.Rooms[1].QueueAll, f.snap.Rooms[1].Waiting = false, 0 })
	mesh.change(func(f *fakeMesh) { f.snap.Rooms[4].Name, f.snap.Rooms[4].Waiting = "brand-new", 31 })
	b.Shows(".rooms", "brand-new", "31")
	mesh.change(func(f *fakeMesh) { f.snap.Rooms = f.snap.Rooms[:5] })
	b.Awaits("document.querySelectorAll('.rooms .body .row').length === 5")
	b.Fill("#filter", "brand")
	b.Awaits("document.querySelectorAll('.rooms .body .row').length === 1")
	b.Shows(".found", "1 of 5")
	b.Fill("#filter", "nothing is called so")
	b.Shows("main", "No room is like that")
	b.Fill("#filter", "")
	b.Click(".rooms .head button", "Room")
	b.Awaits("document.querySelector('.rooms .body .name a').textContent === 'brand-new'")
	b.Click(".rooms .head button", "Room")
	b.Awaits("document.querySelector('.rooms .body .row:last-child .name a').textContent === 'brand-new'")
	s.stop()
	b.Shows("#health h1", "This page is cut off")
	b.Shows("#live", "Not heard for")
	b.settle("cut off")
	b.wantNothingWrong()
}

// TestBrowserAsksForAToken where the node wants one, and when it is good no more.
func TestBrowserAsksForAToken(t *testing.T) {
	s := serve(t, newFakeMesh(1, 12, 4), nil)
	b := newTab(t, newBrowser(t))
	b.open(s, "")
	b.Awaits("!!document.querySelector('dialog.signin')")
	b.settle("a token, please")
	b.CheckAccess()
	b.Fill("#token", "wrong")
	b.press(kb.Enter)
	b.Shows("dialog.signin .wrong", "does not take this token")
	b.Fill("#token", someToken)
	b.press(kb.Enter)
	b.Shows("#health h1", "All is well")
	equal(t, "what is kept for longer than the tab", browsertest.See[int](b.Tab, "localStorage.length + document.cookie.length"), 0)
	s.allow()
	s.mesh.change(func(f *fakeMesh) { f.snap.Rooms[0].Waiting++ })
	b.Awaits("!!document.querySelector('dialog.signin')")
	b.wantNothingWrong()
}

// focused is the text of what has the focus.
const focused = "document.querySelector(':focus')?.innerText"

// tabTo presses Tab until js, a test of the element e, is true of what has the focus, and
// checks that one sees that it has it.
func (b *tab) tabTo(js string) {
	b.T.Helper()
	for range 80 {
		b.press(kb.Tab)
		if !browsertest.See[bool](b.Tab, "(e => "+js+")(document.activeElement)") {
			continue
		}
		if !browsertest.See[bool](b.Tab, "(e => getComputedStyle(e).outlineStyle !== 'none' && getComputedStyle(e).outlineWidth !== '0px')(document.activeElement)") {
			b.T.Errorf("nobody sees that the focus is on what is %s", js)
		}
		return
	}
	b.T.Fatalf("Tab never comes to what is %s", js)
}

// TestBrowserByKeyboard goes from the top of the page to a change of a limit without a
// mouse, and sees where it is on the way.
func TestBrowserByKeyboard(t *testing.T) {
	s, b := look(t, newFakeMesh(1, 12, 4), "")
	b.Awaits("document.querySelectorAll('.rooms .body .row').length === 12")
	b.press(kb.Tab)
	b.Finds("what the first Tab comes to", focused, "Skip to the content")
	for _, label := range []string{"ropeline", "Rooms", "Limits", "Mesh", "Nodes"} {
		b.tabTo(fmt.Sprintf("e.textContent === %q", label))
	}
	b.tabTo("e.id === 'filter'")
	b.tabTo("e.textContent === 'State'")
	b.press(" ")
	b.Awaits("document.querySelector('[aria-sort=ascending]')?.textContent === 'State'")
	b.tabTo("!!e.href && !!e.closest('.body .name')")
	name := b.Text(":focus")
	b.press(kb.Enter)
	b.Shows(".view.room h2", name)
	b.Finds("what has the focus in a new view", "document.activeElement.id", "main")
	b.tabTo("e.textContent === '1 h'")
	b.press(kb.Enter)
	b.Awaits("document.querySelector('.charts [aria-pressed=true]').textContent === '1 h'")
	b.tabTo("e.id === 'total_active_users'")
	b.Fill("#total_active_users", "4321")
	b.press(kb.Enter)
	b.Shows("dialog", "Change limits of "+name, "4,321")
	b.Finds("what has the focus in the dialog", focused, "Leave it as it is") // Enter changes nothing
	b.settle("confirm")
	b.press(kb.Escape)
	b.Awaits("!document.querySelector('dialog')")
	s.wantEdit(0) // Escape changes nothing
	b.tabTo("e.textContent === 'Change limits …'")
	b.press(kb.Enter)
	b.tabTo("e.textContent === 'Change limits'")
	b.press(kb.Enter)
	b.Awaits("!document.querySelector('dialog')")
	s.wantEdit(1, "PATCH /api/v1/rooms/", " map[total_active_users:4321]")
	b.Shows(".tiles", "of 4,321")
	b.wantNothingWrong()
}

// TestBrowserWithoutScript says that it needs one.
func TestBrowserWithoutScript(t *testing.T) {
	s := serve(t, newFakeMesh(1, 1, 1), nil)
	b := newTab(t, newBrowser(t))
	b.NoScript()
	b.Do(chromedp.Navigate(s.url("/dashboard/")))
	b.Shows("noscript", "needs JavaScript")
}

// TestBrowserDrawsEveryRow, those out of sight too, which a person may search for and a
// screen reader reads.
func TestBrowserDrawsEveryRow(t *testing.T) {
	mesh := newFakeMesh(1, 300, 12)
	_, b := look(t, mesh, "")
	b.Awaits("document.querySelectorAll('.rooms .body .row').length === 250")
	mesh.change(func(f *fakeMesh) {
		for i := range f.snap.Rooms {
			f.snap.Rooms[i].Waiting = 7777
		}
	})
	b.Awaits("[...document.querySelectorAll('.rooms .body .waiting')].every(e => e.textContent === '7,777')")
	// A row that has the focus stays where it is, and shows what a new snapshot says.
	b.Run("document.querySelector('.rooms .body .name a').focus()")
	b.Run(`import('./app.js').then(({draw, mesh}) => {
		const all = structuredClone(mesh.whole())
		all.rooms.forEach(r => { r.waiting = 4242 })
		mesh.snapshot(all)
		draw()
	})`)
	b.Awaits("[...document.querySelectorAll('.rooms .body .waiting')].every(e => e.textContent === '4,242')")
	b.Click("button", "Show 50 of 50 more")
	b.Awaits("document.querySelectorAll('.rooms .body .row').length === 300")
	b.wantNothingWrong()
}

// TestBrowserLetsGoOfPages that were left: a browser keeps them for who goes back, and has
// six connections to one node for all of them.
func TestBrowserLetsGoOfPages(t *testing.T) {
	s, b := sitDown(t, newFakeMesh(1, 12, 4))
	for range 7 {
		b.open(s, "#/nodes")
		b.Shows("#live", "Live from fra-1")
	}
	b.open(s, "#/rooms/"+s.room())
	b.Awaits("document.querySelectorAll('.plot canvas').length === 2")
	b.Run("setTimeout(() => history.go(-2))") // after its own answer, which is lost with the page
	b.Shows("main", "Nodes")
	s.mesh.change(func(f *fakeMesh) { f.snap.Nodes[2].State = "failed" })
	b.Shows("#health h1", "A node does not answer: sin-1")
	b.wantNothingWrong()
}
