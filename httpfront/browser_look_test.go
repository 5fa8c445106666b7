package httpfront

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/ropeline/ropeline/httpfront/browsertest"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/page/pagetest"
)

// wide returns how many pixels the page is wider than the window.
const wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

// TestBrowserLooks opens the page in every situation and in the ways that people
// look at it, checks what a program can check, and keeps pictures of the rest.
func TestBrowserLooks(t *testing.T) {
	browser := newBrowser(t)
	type look struct {
		name       string
		set        func(*tab)
		situations []string // none: all
	}
	some := []string{"fifo", "random", "pre-queue in order", "reject"}
	for _, l := range []look{
		{"light", func(*tab) {}, nil},
		{"dark", func(b *tab) { b.Likes("prefers-color-scheme", "dark") }, some},
		{"phone", (*tab).isPhone, some},
		{"from right to left", func(b *tab) { b.speaks("ar-EG") }, some},
		{"Hindi", func(b *tab) { b.speaks("hi-IN") }, some[:1]},
		{"forced colours", func(b *tab) { b.Likes("forced-colors", "active", "prefers-color-scheme", "dark") }, some[:1]},
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
					if n := browsertest.See[int](b.Tab, wide); n > 0 {
						t.Errorf("the page is %d pixels wider than the window", n)
					}
					b.Keep(situation + " " + l.name)
					if l.name != "phone" { // where it is the same page
						b.CheckAccess()
					}
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
			if got := browsertest.See[string](b.Tab, "getComputedStyle(document.querySelector('main')).borderTopLeftRadius"); got == "0px" {
				t.Error("the page has no style")
			}
			if n := browsertest.See[int](b.Tab, wide); n > 0 {
				t.Errorf("the page is %d pixels wider than the window", n)
			}
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
	if n := browsertest.See[int](b.Tab, "document.getAnimations().length"); n == 0 {
		t.Error("nothing moves at all: this test shows nothing")
	}
	b.Likes("prefers-reduced-motion", "reduce")
	b.open(s.url("/"))
	if n := browsertest.See[int](b.Tab, "document.getAnimations().length"); n != 0 {
		t.Errorf("%d things move", n)
	}
}

// TestBrowserKeepsToThePolicy: what the page has is what its policy lets it have.
func TestBrowserKeepsToThePolicy(t *testing.T) {
	browser := newBrowser(t)
	s, b := watch(t, browser, "fifo")
	b.Run(`self.broken = []; document.addEventListener('securitypolicyviolation', e => broken.push(e.violatedDirective))`)
	b.asksIn(s, 20*time.Second)
	if got := browsertest.See[[]string](b.Tab, "broken"); len(got) > 0 {
		t.Errorf("the page wanted to do what it may not: %v", got)
	}
	if got := browsertest.See[string](b.Tab, "getComputedStyle(document.querySelector('main')).borderTopLeftRadius"); got == "0px" {
		t.Error("the page has no style")
	}
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
