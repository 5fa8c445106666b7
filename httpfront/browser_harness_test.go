package httpfront

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
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

func newStage(t *testing.T, situation string) *stage {
	t.Helper()
	s := &stage{t: t}
	s.put(situation)
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

func (s *stage) put(situation string) {
	s.t.Helper()
	in, ok := pagetest.Situations()[situation]
	if !ok {
		s.t.Fatalf("there is no situation %q", situation)
	}
	s.change(func(s *stage) {
		s.now = *in.Verdict
		s.now.View.Settings = in.Settings
	})
}

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

func (b *tab) isPhone() {
	b.Sized(320, 568, true)
}

// handClock gives pages a clock and timers that move by tick(milliseconds) alone.
// next() is in how many milliseconds the next timer is due, null for none.
const handClock = `(() => {
	const timers = new Map(), noon = 1795780800000
	let now = 0, ids = 0
	const first = () => [...timers.values()].sort((a, b) => a.at - b.at)[0]
	self.setTimeout = (run, wait = 0) => { timers.set(++ids, {id: ids, at: now + wait, run}); return ids }
	self.clearTimeout = id => { timers.delete(id) }
	Date.now = () => noon + now
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

// watch opens the page of a room in a situation, which waits for tick.
func watch(t *testing.T, browser context.Context, situation string) (*stage, *tab) {
	t.Helper()
	s, b := newStage(t, situation), newTab(t, browser)
	b.holdsTheClock(s.url("/"))
	return s, b
}

// asksIn checks that the page asks next in that time, lets the time go by, and waits
// for the page to have taken the answer in.
func (b *tab) asksIn(s *stage, wait time.Duration) {
	b.T.Helper()
	b.wantNext(wait)
	before := s.timesAsked()
	b.Run(fmt.Sprintf("tick(%d)", wait.Milliseconds()))
	waitFor(b.T, "the page to ask", func() bool { return s.timesAsked() == before+1 })
	b.Awaits("next() !== null")
}

// wantNext checks when the page asks next; 0 is never.
func (b *tab) wantNext(want time.Duration) {
	b.T.Helper()
	if got := browsertest.See[*float64](b.Tab, "next()"); got == nil && want != 0 || got != nil && time.Duration(*got)*time.Millisecond != want {
		b.T.Fatalf("the page asks next in %v ms, want %v", browsertest.See[any](b.Tab, "next()"), want)
	}
}
