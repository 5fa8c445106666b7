package httpfront

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"golang.org/x/time/rate"

	"github.com/ropeline/ropeline/httpfront/browsertest"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/page/pagetest"
	"github.com/ropeline/ropeline/node"
)

func newBrowser(t *testing.T) context.Context {
	t.Helper()
	return browsertest.New(t, 700, 760)
}

// stage is a front whose room is in the situation that a test puts it into, at
// pagetest.Noon.
type stage struct {
	*front
	t *testing.T

	mu      sync.Mutex // guards the following
	now     node.Verdict
	page    *page.Page
	asked   int           // requests that came
	failing bool          // whether they are answered with an error
	crowd   *rate.Limiter // of new visitors; nil: none
}

func newStage(t *testing.T, situation string, change ...func(*stage)) *stage {
	t.Helper()
	s := &stage{t: t}
	s.put(situation, change...)
	r := newRoom(nil)
	r.decide = func(node.Pass, bool, time.Time) node.Verdict {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked++
		return s.now
	}
	s.front = serve(t, fakeRooms{room: r}, http.HandlerFunc(siteBehind), func(c *Config) {
		c.Clock = func() time.Time { return pagetest.Noon }
		c.Ready = func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.failing {
				s.asked++
				return fmt.Errorf("the test says so")
			}
			return nil
		}
	})
	s.show()
	return s
}

// show has the room answer with s.page, if there is one.
func (s *stage) show() {
	if s.front == nil {
		return
	}
	made := *s.front.front.plain
	if s.page != nil {
		made.page = s.page
	}
	made.newVisitors.all = s.crowd
	s.front.front.rooms.Store(&map[roomKey]*roomFront{{name: "shop"}: &made})
}

// siteBehind is what a visitor gets who is let in. Below /pages/ programs get the code
// that the path says, below /closed/ everybody does.
func siteBehind(w http.ResponseWriter, r *http.Request) {
	for prefix, fails := range map[string]bool{"/pages/": page.PrefersJSON([]byte(r.Header.Get("Accept"))), "/closed/": true} {
		if code, ok := strings.CutPrefix(r.URL.Path, prefix); ok && fails {
			code, _ := strconv.Atoi(code)
			w.WriteHeader(code)
			io.WriteString(w, "<h1>Closed for today</h1>")
			return
		}
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, `<!doctype html><title>The shop</title><h1 id="shop">Welcome by %s</h1>`, r.Method)
}

// change changes what the room answers from now on.
func (s *stage) change(f func(*stage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
	s.show()
}

// put puts the room into a situation, and changes what it answers there.
func (s *stage) put(situation string, change ...func(*stage)) {
	s.t.Helper()
	in, ok := pagetest.Situations()[situation]
	if !ok {
		s.t.Fatalf("there is no situation %q", situation)
	}
	s.change(func(s *stage) {
		s.now = *in.Verdict
		s.now.View.Settings = in.Settings
		for _, f := range change {
			f(s)
		}
	})
}

// refreshes has pages ask again after d.
func refreshes(d time.Duration) func(*stage) { return func(s *stage) { s.now.Refresh = d } }

// fails has requests be answered with an error.
func fails(is bool) func(*stage) { return func(s *stage) { s.failing = is } }

// letIn lets everybody in from now on.
func (s *stage) letIn() { s.change(func(s *stage) { s.now = node.Verdict{Admit: true} }) }

func (s *stage) timesAsked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// tab is a tab of a browser that visits a stage.
type tab struct{ *browsertest.Tab }

func newTab(t *testing.T, browser context.Context) *tab {
	t.Helper()
	return &tab{browsertest.NewTab(t, browser)}
}

// open goes to a page, and returns when its script has begun.
func (b *tab) open(url string) {
	b.T.Helper()
	b.Do(chromedp.Navigate(url), chromedp.WaitReady(chromedp.CSS("main, h1")))
}

func (b *tab) speaks(acceptLanguage string) {
	b.Do(browsertest.Call(network.Enable, network.EnableParams{}),
		browsertest.Call(network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": acceptLanguage}}))
}

func (b *tab) isPhone() { b.Sized(320, 568, true) }

// handClock gives pages a clock and timers that move by tick(milliseconds) alone.
// next() is in how many milliseconds the next timer is due, null for none.
const handClock = `(() => {
	const timers = new Map(), noon = 1795780800000
	let now = 0, ids = 0
	const first = () => [...timers.values()].sort((a, b) => a.at - b.at)[0]
	self.setTimeout = (run, wait = 0) => { timers.set(++ids, {id: ids, at: now + wait, run}); return ids }
	self.clearTimeout = id => { timers.delete(id) }
	Date.now = () => noon + now + (self.skew || 0)
	performance.now = () => now
	Math.random = () => 0
	self.next = () => first() ? first().at - now : null
	self.tick = ms => {
		const end = now + ms
		for (let t; (t = first()) && t.at <= end;) { timers.delete(t.id); now = t.at; t.run() }
		now = end
	}
	self.hide = hidden => {
		Object.defineProperty(document, 'hidden', {value: hidden, configurable: true})
		document.dispatchEvent(new Event('visibilitychange'))
	}
})()`

// holdsTheClock makes the pages of the tab wait for tick, and opens one.
func (b *tab) holdsTheClock(url string) {
	b.T.Helper()
	b.Before(handClock)
	b.open(url)
	b.Run("tick(0)") // with it the reload that Refresh asks for is called off
}

// wasAsked waits until n requests have come.
func (s *stage) wasAsked(n int) {
	s.t.Helper()
	waitFor(s.t, "the page to ask", func() bool { return s.timesAsked() == n })
}

// watch opens the page at a path of a room in a situation, which waits for tick.
func watch(t *testing.T, browser context.Context, situation, path string) (*stage, *tab) {
	t.Helper()
	s, b := newStage(t, situation), newTab(t, browser)
	b.holdsTheClock(s.url(path))
	return s, b
}

// asksIn checks that the page asks next in that time, lets the time go by, and waits
// for the page to have taken the answer in.
func (b *tab) asksIn(s *stage, wait time.Duration) {
	b.T.Helper()
	b.wantNext(wait)
	before := s.timesAsked()
	b.Run(fmt.Sprintf("tick(%d)", wait.Milliseconds()))
	s.wasAsked(before + 1)
	b.Awaits("next() !== null")
}

// wantNext checks when the page asks next; 0 is never.
func (b *tab) wantNext(want time.Duration) {
	b.T.Helper()
	next := "never"
	if want != 0 {
		next = fmt.Sprint(want.Milliseconds())
	}
	if got := browsertest.See[string](b.Tab, "String(next() ?? 'never')"); got != next {
		b.T.Fatalf("the page asks next in %s ms, want %s", got, next)
	}
}

// isStyled checks that the page may have the style that it has.
func (b *tab) isStyled() {
	b.T.Helper()
	corner := browsertest.See[string](b.Tab, "getComputedStyle(document.querySelector('main')).borderTopLeftRadius")
	equal(b.T, "the page has no style", corner == "0px", false)
}

// fits checks that the page is no wider than the window.
func (b *tab) fits() {
	b.T.Helper()
	wider := browsertest.See[int](b.Tab, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
	equal(b.T, "how many pixels the page is wider than the window", max(wider, 0), 0)
}

// TestBrowserLooks opens the page in every situation and in the ways that people
// look at it, checks what a program can check, and keeps pictures of the rest.
func TestBrowserLooks(t *testing.T) {
	browser := newBrowser(t)
	some := []string{"fifo", "random", "pre-queue in order", "reject"}
	all, colours := (*browsertest.Tab).CheckAccess, (*browsertest.Tab).CheckColours
	for _, l := range []struct {
		name       string
		set        func(*tab)
		check      func(*browsertest.Tab)
		situations []string // none: all
	}{
		{"light", func(*tab) {}, all, nil},
		{"dark", func(b *tab) { b.Likes("prefers-color-scheme", "dark") }, colours, some},
		{"phone", (*tab).isPhone, func(*browsertest.Tab) {}, some}, // it is the same page
		{"from right to left", func(b *tab) { b.speaks("ar-EG") }, all, some},
		{"Hindi", func(b *tab) { b.speaks("hi-IN") }, all, some[:1]},
		{"forced colours", func(b *tab) { b.Likes("forced-colors", "active", "prefers-color-scheme", "dark") }, colours, some[:1]},
	} {
		t.Run(l.name, func(t *testing.T) {
			s := newStage(t, "fifo")
			b := newTab(t, browser)
			l.set(b)
			for situation := range pagetest.Situations() {
				if l.situations != nil && !slices.Contains(l.situations, situation) {
					continue
				}
				t.Run(situation, func(t *testing.T) {
					b := &tab{&browsertest.Tab{T: t, Ctx: b.Ctx}}
					s.put(situation)
					b.open(s.url("/"))
					b.fits()
					b.Keep(situation + " " + l.name)
					l.check(b.Tab)
				})
			}
		})
	}
}

// TestBrowserShowsNotices of what failed, as their policy lets them look.
func TestBrowserShowsNotices(t *testing.T) {
	s := newStage(t, "fifo")
	s.follow(fiveAMinute())
	for range 5 {
		s.get("/free")
	}
	browser := newBrowser(t)
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			b := newTab(t, browser)
			b.isPhone()
			b.Likes("prefers-color-scheme", scheme)
			b.open(s.url("/free"))
			b.Shows("h1", "Too many requests")
			b.isStyled()
			b.fits()
			b.Keep("too many requests " + scheme)
			b.CheckAccess()
		})
	}
}

// TestBrowserReadsFromRightToLeft where the language does, the numbers and the
// countdown too.
func TestBrowserReadsFromRightToLeft(t *testing.T) {
	s := newStage(t, "fifo")
	b := newTab(t, newBrowser(t))
	b.speaks("fa, en;q=0.5")
	b.holdsTheClock(s.url("/"))
	b.Finds("the direction of the page", "getComputedStyle(document.body).direction", "rtl")
	b.Shows("main", "۱٬۲۳۵")
	if browsertest.See[bool](b.Tab, "document.querySelectorAll('dl div')[2].offsetLeft < document.querySelectorAll('dl div')[3].offsetLeft") {
		t.Error("what comes first is not on the right")
	}
	s.put("pre-queue in order")
	b.asksIn(s, 20*time.Second)
	b.Shows("main", "۴۱")
	b.Shows("[role=timer]", "۰۱")
	b.Keep("from right to left")
}

// TestBrowserMovesNothing for those whom movement makes ill.
func TestBrowserMovesNothing(t *testing.T) {
	s := newStage(t, "random")
	b := newTab(t, newBrowser(t))
	b.open(s.url("/"))
	const moving = "document.getAnimations().length"
	equal(t, "something moves at all, without which this test shows nothing", browsertest.See[int](b.Tab, moving) > 0, true)
	b.Likes("prefers-reduced-motion", "reduce")
	b.open(s.url("/"))
	equal(t, "how much moves", browsertest.See[int](b.Tab, moving), 0)
}

// TestBrowserKeepsToThePolicy: what the page has is what its policy lets it have.
func TestBrowserKeepsToThePolicy(t *testing.T) {
	browser := newBrowser(t)
	s, b := watch(t, browser, "fifo", "/")
	b.Run(`self.broken = []; document.addEventListener('securitypolicyviolation', e => broken.push(e.violatedDirective))`)
	b.asksIn(s, 20*time.Second)
	b.Finds("what the page wanted to do and may not", "broken.join()", "")
	b.isStyled()
	b.Run(`document.body.append(Object.assign(document.createElement('script'), {text: 'self.done = 1'}))`)
	if browsertest.See[bool](b.Tab, "self.done === 1") || len(browsertest.See[[]string](b.Tab, "broken")) == 0 {
		t.Error("any script may run in the page")
	}
}

// TestBrowserShowsItInFrames of the sites that the room names, and no others.
func TestBrowserShowsItInFrames(t *testing.T) {
	b := newTab(t, newBrowser(t))
	outer := newStage(t, "fifo") // its site has another port, and so is another origin
	outer.letIn()
	inner := newStage(t, "fifo")
	framed := func() bool {
		b.open(outer.url("/"))
		b.Run(fmt.Sprintf(`document.body.append(Object.assign(document.createElement('iframe'),
			{src: %q, width: 600, height: 640, onload() { self.loaded = true }}))`, inner.url("/")))
		b.Awaits("self.loaded === true")
		var frame *cdp.Frame
		b.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			tree, err := cdp.Call(ctx, target, cdppage.GetFrameTree, cdp.Empty{})
			if err != nil || len(tree.FrameTree.ChildFrames) != 1 {
				return fmt.Errorf("want one frame: %v", err)
			}
			frame = tree.FrameTree.ChildFrames[0].Frame
			return nil
		}))
		return frame.UnreachableURL == ""
	}
	if framed() {
		t.Error("any site may frame the page")
	}
	inner.change(func(s *stage) { s.page = newPage(t, page.Config{FrameAncestors: []string{"http://" + outer.addr}}) })
	if !framed() {
		t.Error("the site that is named may not frame the page")
	}
	b.Keep("in a frame")
}
