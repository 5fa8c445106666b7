package httpfront

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/ropeline/ropeline/httpfront/browsertest"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/page/pagetest"
)

const (
	whenLoaded = "performance.timeOrigin"
	said       = "document.querySelector('#say').textContent" // to a screen reader
)

// TestBrowserFollowsSwitches keeps one page open while the room goes through
// everything that it can be in. The page is loaded once and follows by its
// script, until the room rejects: then it asks no more.
func TestBrowserFollowsSwitches(t *testing.T) {
	s, b := watch(t, newBrowser(t), "fifo", "/")
	loaded := browsertest.See[float64](b.Tab, whenLoaded)
	for i, step := range []struct{ situation, shows, title string }{
		{"fifo", "You are in line|1,235|1,234|Estimated wait|1 hour and 1 minute", "#1,235 · You are in line"},
		{"random", "You are waiting to come in|random|Estimated wait|about 18 minutes to 1 hour and 24 minutes", "You are waiting to come in"},
		{"pre-queue that shuffles", "It has not started yet|at random|Starts in|0:10:01", "It has not started yet"},
		{"pre-queue in order", "It has not started yet|in the order|Starts in|0:10:01|41|40", "#41 · It has not started yet"},
		{"event", "You are in line|1,235", "#1,235 · You are in line"},
		{"queue all", "Nobody is let in at the moment|1,235|not known yet", "#1,235 · You are in line"},
		{"fifo for more than a day", "The line is very long|more than a day", "#300 · The line is very long"},
		{"reject", "Nobody is let in right now|come back later", "Nobody is let in right now"},
	} {
		s.put(step.situation)
		if i > 0 {
			b.Run("tick(20000)")
		}
		b.Shows("main", strings.Split(step.shows, "|")...)
		b.Finds("the title of "+step.situation, "document.title", step.title+" · Waiting room")
		b.Keep(step.situation)
	}
	lacks(t, "where nobody waits", b.Text("main"), "Estimated wait", "Starts in", "place in line", "keep this page")
	b.wantNext(0)
	b.Run("hide(true)")
	b.Run("hide(false)")
	b.wantNext(0)
	equal(t, "when the page was loaded", browsertest.See[float64](b.Tab, whenLoaded), loaded)
}

// TestBrowserAsksWhenTheServerSays: the nearer the turn, the sooner.
func TestBrowserAsksWhenTheServerSays(t *testing.T) {
	s, b := watch(t, newBrowser(t), "fifo", "/")
	b.asksIn(s, 20*time.Second)
	s.change(refreshes(time.Minute))
	b.asksIn(s, 20*time.Second)
	s.change(refreshes(2 * time.Second))
	b.asksIn(s, time.Minute)
	b.asksIn(s, 2*time.Second)
}

// TestBrowserClockIsSet back or on, by hand or after a sleep: the page goes on asking, and looked at again does not wait longer.
func TestBrowserClockIsSet(t *testing.T) {
	s, b := watch(t, newBrowser(t), "fifo", "/")
	b.Run("self.skew = -3600000; hide(true); hide(false)")
	b.asksIn(s, 20*time.Second)
	b.Run("tick(5000); self.skew = -7200000; hide(true); hide(false)")
	b.asksIn(s, 15*time.Second)
	before := s.timesAsked()
	b.Run("self.skew = 0; hide(true); self.skew = 3600000; hide(false); tick(0)")
	s.wasAsked(before + 1)
	b.Awaits("next() === 20000")
}

// TestBrowserInAHiddenTab: there it asks only as often as keeps the place, and at
// once when it is looked at again.
func TestBrowserInAHiddenTab(t *testing.T) {
	const (
		kept    = 5 * time.Minute // as in the situation
		hidden  = 2 * time.Minute // two fifths of that
		delay   = time.Minute     // for which browsers hold timers of hidden tabs
		refresh = 20 * time.Second
	)
	s, b := watch(t, newBrowser(t), "fifo", "/")
	b.Run("hide(true)")
	b.asksIn(s, hidden)
	b.asksIn(s, hidden)

	b.Run("tick(5000)")
	b.Run("hide(false)")
	b.wantNext(refresh - 5*time.Second) // its time has not come yet
	b.Run("hide(true)")
	b.Run("tick(60000)")
	before := s.timesAsked()
	b.Run("hide(false); tick(0)")
	s.wasAsked(before + 1)
	b.Awaits("next() === 20000")

	// The worst that the place has to survive: a timer held, a failure, another held.
	b.Run("hide(true)")
	away := hidden + delay
	s.change(fails(true))
	b.asksIn(s, hidden)
	again := browsertest.See[float64](b.Tab, "next()")
	away += time.Duration(again)*time.Millisecond + delay
	if away >= kept {
		t.Errorf("a hidden tab may leave %v between two requests, and the place is kept for %v", away, kept)
	}

	// A refresh that is longer than that goes first.
	s.change(func(s *stage) { s.failing, s.now.Refresh = false, 4*time.Minute })
	b.asksIn(s, time.Duration(again)*time.Millisecond)
	b.wantNext(4 * time.Minute)
}

// TestBrowserWakesAHiddenTab though its timers are held: whose turn is near is asked to
// come every second. Its clocks go in steps, as those of browsers do that tell little of the machine.
func TestBrowserWakesAHiddenTab(t *testing.T) {
	s := newStage(t, "fifo", refreshes(time.Second), func(s *stage) { s.now.Estimate.Ahead, s.now.Estimate.Position = 0, 1 })
	b := newTab(t, newBrowser(t))
	b.Before(`{
		const timer = self.setTimeout, date = Date.now, since = performance.now.bind(performance)
		Date.now = () => Math.floor(date() / 300) * 300
		performance.now = () => Math.floor(since() / 300) * 300
		self.setTimeout = (run, wait) => document.hidden ? 0 : timer(run, wait)
		Object.defineProperty(document, 'hidden', {value: false, configurable: true})
	}`)
	b.open(s.url("/"))
	b.Run(`Object.defineProperty(document, 'hidden', {value: true, configurable: true})
		document.dispatchEvent(new Event('visibilitychange'))`)
	before := s.timesAsked()
	waitFor(t, "the hidden page to ask", func() bool { return s.timesAsked() >= before+3 })
	s.letIn()
	b.Awaits("document.title === 'It is your turn'")
}

// TestBrowserIsLetIn by whichever way it waited.
func TestBrowserIsLetIn(t *testing.T) {
	browser := newBrowser(t)
	t.Run("looking on", func(t *testing.T) {
		s, b := watch(t, browser, "fifo", "/")
		s.letIn()
		b.Run("tick(20000)")
		b.Shows("#shop", "Welcome by GET")
	})
	t.Run("looking away", func(t *testing.T) {
		s, b := watch(t, browser, "fifo", "/")
		b.Run("hide(true)")
		s.letIn()
		b.Run("tick(120000)")
		b.Awaits("document.title === 'It is your turn'")
		b.Shows("h1", "It is your turn")
		b.Keep("its turn")
		b.wantNext(0)
		b.Run("hide(false)")
		b.Shows("#shop", "Welcome by GET")
	})
	t.Run("without JSON", func(t *testing.T) {
		s, b := watch(t, browser, "fifo", "/")
		s.page = newPage(t, page.Config{NoJSON: true}) // from now on
		s.put("queue all")
		b.wantNext(20 * time.Second)
		b.Run("tick(20000)")
		b.Shows("main", "Nobody is let in at the moment")
		b.Run("tick(0)")
		s.put("random")
		b.wantNext(20 * time.Second)
		b.Run("tick(20000)")
		b.Shows("main", "You are waiting to come in")
		b.Run("tick(0)")
		b.wantNext(20 * time.Second)
	})
	tmpl, warnings, err := page.Compile("<main>{{#position}}Place {{.}}{{/position}}{{#isRandomQueue}}A draw{{/isRandomQueue}}</main>")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	for name, of := range map[string]struct {
		page         page.Config
		fifo, random []string
	}{
		"without JavaScript": {
			page.Config{}, []string{"1,235", "1 hour and 1 minute", "11:59:40", "It reloads by itself."}, []string{"You are waiting to come in"},
		},
		"on a template, without JavaScript": {page.Config{Template: tmpl}, []string{"Place 1235"}, []string{"A draw"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for reloads
			s, b := newStage(t, "fifo"), newTab(t, browser)
			s.page = newPage(t, of.page)
			s.change(refreshes(time.Second))
			b.NoScript()
			b.open(s.url("/"))
			b.Shows("main", of.fifo...)
			lacks(t, "what only a script can do", b.Text("main"), "It keeps itself up to date.")
			b.Keep(name)
			s.put("random", refreshes(time.Second))
			b.Shows("main", of.random...)
			s.letIn()
			b.Shows("#shop", "Welcome by GET")
		})
	}
	// pageElsewhere is another proxy, which shows the page itself where admit does not answer.
	pageElsewhere := func(t *testing.T, unsafe bool, admit func(w http.ResponseWriter, r *http.Request) bool) string {
		p, in := newPage(t, page.Config{}), pagetest.Situations()["fifo"]
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !admit(w, r) {
				var s page.State
				p.Fill(&s, page.Input{Settings: in.Settings, Verdict: in.Verdict, Now: pagetest.Noon, Unsafe: unsafe})
				w.Write(p.AppendHTML(nil, &s))
			}
		}))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	t.Run("between two questions of another proxy", func(t *testing.T) {
		url := pageElsewhere(t, false, func(w http.ResponseWriter, r *http.Request) bool {
			if page.PrefersJSON([]byte(r.Header.Get("Accept"))) { // as /nginx/page of package verdict
				w.Header().Set("Set-Cookie", "in=1")
				w.Header().Set("Ropeline-State", "admitted")
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			}
			if _, err := r.Cookie("in"); err != nil {
				return false
			}
			siteBehind(w, r)
			return true
		})
		b := newTab(t, browser)
		b.holdsTheClock(url)
		b.Run("tick(20000)")
		b.Shows("#shop", "Welcome by GET")
	})
	t.Run("past a balancer that fails", func(t *testing.T) {
		var failed atomic.Int32
		b := newTab(t, browser)
		b.holdsTheClock(pageElsewhere(t, false, func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case page.PrefersJSON([]byte(r.Header.Get("Accept"))):
				failed.Add(1)
				w.WriteHeader(http.StatusServiceUnavailable)
			case failed.Load() == 0:
				return false
			default:
				siteBehind(w, r)
			}
			return true
		}))
		for _, wait := range []time.Duration{20, 5, 10} {
			b.wantNext(wait * time.Second)
			b.Run(fmt.Sprintf("tick(%d)", wait*1000))
			b.Awaits("next() !== null")
			b.Shows("#say", "No connection. Trying again; you keep your place.")
		}
		b.Run("tick(20000)")
		b.Shows("#shop", "Welcome by GET")
	})
	t.Run("under an address with a password", func(t *testing.T) {
		s, b := newStage(t, "fifo"), newTab(t, browser)
		b.holdsTheClock(strings.Replace(s.url("/a?b=c"), "//", "//user:secret@", 1))
		s.letIn()
		b.Run("tick(20000)")
		b.Shows("#shop", "Welcome by GET")
		b.Finds("where the browser is", "location.pathname + location.search", "/a?b=c")
	})
	t.Run("after sending a form", func(t *testing.T) {
		s := newStage(t, "fifo")
		b := newTab(t, browser)
		s.letIn()
		b.holdsTheClock(s.url("/"))
		s.put("fifo")
		b.Run(`document.body.innerHTML = '<form method=post action="/pay?a=b"><input name=card></form>'; document.forms[0].submit()`)
		b.Shows("main", "What you sent has not been delivered", "1,235")
		b.Keep("after sending a form")
		b.Run("tick(0)")
		s.letIn()
		b.Run("tick(20000)")
		b.Shows("#shop", "Welcome by GET")
		b.Finds("where the browser is", "location.pathname + location.search", "/pay?a=b")
	})
	t.Run("after sending a form to a path that could be a host", func(t *testing.T) {
		url := pageElsewhere(t, true, func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet {
				return false
			}
			w.Header().Set("Ropeline-State", "admitted")
			siteBehind(w, r)
			return true
		})
		b := newTab(t, browser)
		b.holdsTheClock(url)
		const path = "//other.test/pay?a=b" // which the front refuses
		b.Run(`document.body.innerHTML = '<form method=post action="` + url + path + `"><input name=card></form>'; document.forms[0].submit()`)
		b.Shows("main", "What you sent has not been delivered")
		b.Run("tick(0)")
		b.Run("tick(20000)")
		b.Shows("#shop", "Welcome by GET")
		b.Finds("where the browser is", "location.href", url+path)
	})
}

// TestBrowserIsLetInWhereProgramsAreNot: what the site says to a question for JSON is no
// trouble of ours.
func TestBrowserIsLetInWhereProgramsAreNot(t *testing.T) {
	browser := newBrowser(t)
	for _, code := range []string{"404", "429", "500", "503"} {
		t.Run(code, func(t *testing.T) {
			s, b := watch(t, browser, "fifo", "/pages/"+code)
			s.letIn()
			b.Run("tick(20000)")
			b.Shows("#shop", "Welcome by GET")
		})
	}
	t.Run("nor visitors", func(t *testing.T) {
		s, b := watch(t, browser, "fifo", "/closed/503")
		s.letIn()
		b.Run("tick(20000)")
		b.Shows("h1", "Closed for today")
	})
}

// TestBrowserWithoutAPlace is an open page whose visitor has lost the place, and gets no
// other one while too many new visitors come.
func TestBrowserWithoutAPlace(t *testing.T) {
	browser := newBrowser(t)
	for name, p := range map[string]page.Config{"with JSON": {}, "without": {NoJSON: true}} {
		t.Run(name, func(t *testing.T) {
			s, b := newStage(t, "fifo"), newTab(t, browser)
			s.change(func(s *stage) { s.page = newPage(t, p) })
			b.holdsTheClock(s.url("/"))
			s.change(func(s *stage) {
				s.now.New = true
				s.crowd = rate.NewLimiter(0, 0)
			})
			b.Run("tick(20000)")
			b.Shows("main", "Nobody is let in right now", "You do not have a place in line. Please try again in a moment.")
			lacks(t, "where there is no place", b.Text("main"), "1,235", "Estimated wait", "keep your place")
			if p.NoJSON {
				return // a page of a few words, which the Refresh field loads again
			}
			b.Keep("no place")
			b.Awaits("next() >= 15000 && next() < 30000")
			s.change(func(s *stage) { s.now.New, s.crowd = false, nil })
			b.Run("tick(30000)")
			b.Shows("main", "You are in line", "1,235")
			b.Finds("the title", "document.title", "#1,235 · You are in line · Waiting room")
		})
	}
}

// TestBrowserCountsDown to an event, and does not ask at its start, when all others
// would.
func TestBrowserCountsDown(t *testing.T) {
	s, b := watch(t, newBrowser(t), "pre-queue that shuffles", "/")
	b.Shows("[role=timer]", "0:10:01")
	b.Run("tick(1000)")
	b.Shows("[role=timer]", "0:10:00")
	s.change(refreshes(time.Hour))
	b.Run("tick(19000)")
	s.wasAsked(2)
	b.Shows("[role=timer]", "0:10:01") // the server's clock goes first
	b.Run("tick(541000)")
	b.Shows("[role=timer]", "0:01:00")
	b.Run("tick(70000)")
	b.Shows("[role=timer]", "0:00:00")
	equal(t, "how often it asked", s.timesAsked(), 2)
	b.Finds("what a screen reader is told", said, "It has not started yet. 11 minutes")
}

// TestBrowserTellsOfTrouble, tries again ever more seldom, and goes on where it was.
func TestBrowserTellsOfTrouble(t *testing.T) {
	s, b := watch(t, newBrowser(t), "fifo", "/")
	equal(t, "what is for screen readers is seen", browsertest.See[bool](b.Tab, "document.querySelector('#say').offsetWidth > 1"), false)
	s.change(fails(true))
	for _, wait := range []time.Duration{20, 5, 10, 20, 40, 60} {
		b.asksIn(s, wait*time.Second)
		b.Shows("#say", "No connection. Trying again; you keep your place.")
	}
	b.wantNext(time.Minute)
	b.Keep("trouble")
	s.change(fails(false))
	before := s.timesAsked()
	b.Run("dispatchEvent(new Event('online'))")
	s.wasAsked(before + 1)
	b.Awaits("next() === 20000 && document.querySelector('#say').offsetWidth <= 1")
	b.Finds("what a screen reader is told", said, "You are in line. 1 hour and 1 minute")
}

// TestBrowserShowsTheOperatorsMessage, also when it comes while the page is open.
func TestBrowserShowsTheOperatorsMessage(t *testing.T) {
	s, b := watch(t, newBrowser(t), "fifo", "/")
	const shown, message = "document.querySelector('section').offsetHeight > 0", "Row A is sold out.\n<b>Sorry</b> & \"thanks\""
	equal(t, "a box for a message that there is not", browsertest.See[bool](b.Tab, shown), false)
	s.change(func(s *stage) { s.page = newPage(t, page.Config{Message: message}) })
	b.asksIn(s, 20*time.Second)
	b.Shows("section", message)
	b.open(s.url("/"))
	b.Shows("section", message)
	b.Keep("message")
	b.Awaits(shown)
}
