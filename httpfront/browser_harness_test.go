package httpfront

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"golang.org/x/time/rate"

	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/page/pagetest"
	"github.com/ropeline/ropeline/node"
)

// newBrowser starts a headless Chromium with a profile of its own. Without one
// on the machine the test is skipped: it installs nothing.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium in PATH; on Debian: apt-get install chromium")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(700, 760),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
	)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
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
	for prefix, fails := range map[string]bool{"/pages/": prefersJSON([]byte(r.Header.Get("Accept"))), "/closed/": true} {
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
		s.now.View.Settings = *in.Settings
	})
}

// letIn lets everybody in from now on.
func (s *stage) letIn() { s.change(func(s *stage) { s.now = node.Verdict{Admit: true} }) }

func (s *stage) timesAsked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// tab is a tab of a browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// newTab opens a tab in the browser of ctx.
func newTab(t *testing.T, browser context.Context) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	return &tab{t, ctx}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// open goes to a page, and returns when its script has begun.
func (b *tab) open(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url), chromedp.WaitReady(chromedp.CSS("main, h1")))
}

func see[T any](b *tab, js string) T {
	b.t.Helper()
	seen, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](js))
	if err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return seen
}

// run runs js, and lets what it has set off come to an end in the page.
func (b *tab) run(js string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](js))
}

func (b *tab) text(selector string) string {
	b.t.Helper()
	return see[string](b, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// awaits waits until js is true. It asks again if the page goes away meanwhile.
func (b *tab) awaits(js string) {
	b.t.Helper()
	waitFor(b.t, js, func() bool {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](js))
		return err == nil && is
	})
}

// shows waits until the text of an element has all of parts.
func (b *tab) shows(selector string, parts ...string) {
	b.t.Helper()
	for _, part := range parts {
		b.awaits(fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q) ?? false", selector, part))
	}
}

// keep stores a screenshot as an artifact; `go test -artifacts` keeps it for good.
func (b *tab) keep(name string) {
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(b.t.ArtifactDir(), strings.ReplaceAll(name, " ", "-")+".png")
	if err := os.WriteFile(path, picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// cdpCall is a command of the browser's protocol that returns nothing of interest.
func cdpCall[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, c, params)
		return err
	})
}

func (b *tab) noScript() {
	b.do(cdpCall(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
}

// likes sets a media feature, such as prefers-color-scheme.
func (b *tab) likes(features ...string) {
	var list []*emulation.MediaFeature
	for i := 0; i < len(features); i += 2 {
		list = append(list, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	b.do(cdpCall(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: list}))
}

func (b *tab) speaks(acceptLanguage string) {
	b.do(cdpCall(network.Enable, network.EnableParams{}),
		cdpCall(network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": acceptLanguage}}))
}

func (b *tab) isPhone() {
	b.do(cdpCall(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 320, Height: 568, DeviceScaleFactor: 2, Mobile: true}))
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
	b.t.Helper()
	b.do(cdpCall(cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: handClock}))
	b.open(url)
	b.run("tick(0)") // with it the reload that Refresh asks for is called off
}

// asksIn checks that the page asks next in that time, lets the time go by, and waits
// for the page to have taken the answer in.
func (b *tab) asksIn(s *stage, wait time.Duration) {
	b.t.Helper()
	b.wantNext(wait)
	before := s.timesAsked()
	b.run(fmt.Sprintf("tick(%d)", wait.Milliseconds()))
	waitFor(b.t, "the page to ask", func() bool { return s.timesAsked() == before+1 })
	b.awaits("next() !== null")
}

// wantNext checks when the page asks next; 0 is never.
func (b *tab) wantNext(want time.Duration) {
	b.t.Helper()
	if got := see[*float64](b, "next()"); got == nil && want != 0 || got != nil && time.Duration(*got)*time.Millisecond != want {
		b.t.Fatalf("the page asks next in %v ms, want %v", see[any](b, "next()"), want)
	}
}
