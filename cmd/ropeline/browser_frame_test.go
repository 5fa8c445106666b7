package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/ropeline/ropeline/node"
)

// Sites that show the shop in a frame. Neither has a registrable domain in common with
// it, so browsers take its cookies for those of another site.
const (
	partnerHost  = "other.test"
	strangerHost = "stranger.test"
)

// embedding is a shop, and pages of other sites that show it in a frame.
type embedding struct {
	*ticketShop
	partner, stranger string // where those pages are
}

// startEmbedding starts them. The shop lets the partner's site show it; more are lines
// of its file.
func startEmbedding(t *testing.T, more string) *embedding {
	t.Helper()
	outer := httptest.NewUnstartedServer(nil)
	t.Cleanup(outer.Close)
	_, port, err := net.SplitHostPort(outer.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	e := &embedding{partner: "https://" + partnerHost + ":" + port, stranger: "https://" + strangerHost + ":" + port}
	e.ticketShop = startTicketShop(t, "frame-ancestors: "+e.partner+"\n"+more)
	outer.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><html lang=en><title>A partner</title><body style="font-family:sans-serif;background:#ffe8c2">`+
			`<h1>Page of %s</h1><iframe title=Tickets src="%s/" width=700 height=560 onload="loaded = 1"></iframe></html>`, r.Host, e.url)
	})
	outer.TLS = new(tls.Config)
	for i, host := range []string{partnerHost, strangerHost} {
		cert, key := e.ca.issueFor(host, int64(2001+i))
		e.trust(cert)
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		outer.TLS.Certificates = append(outer.TLS.Certificates, pair)
	}
	outer.StartTLS()
	return e
}

// profile has a browser take or refuse the cookies of other sites. People can set it, and
// browsers come as the one or the other.
func profile(t *testing.T, refuse bool) chromedp.ExecAllocatorOption {
	t.Helper()
	mode := 0 // as in Chromium's CookieControlsMode: kOff, kBlockThirdParty
	if refuse {
		mode = 1
	}
	user := t.TempDir()
	dir := filepath.Join(user, "Default")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	preferences := fmt.Appendf(nil, `{"profile": {"cookie_controls_mode": %d}}`, mode)
	if err := os.WriteFile(filepath.Join(dir, "Preferences"), preferences, 0o600); err != nil {
		t.Fatal(err)
	}
	return chromedp.UserDataDir(user)
}

// open goes to a page with a frame, and returns when that is loaded, whatever it shows.
func (e *embedding) open(b context.Context, url string) {
	e.t.Helper()
	if err := chromedp.Do(b, chromedp.Navigate(url)); err != nil {
		e.t.Fatal(err)
	}
	e.awaitThat("the frame is loaded", patience, func() bool { return seesIn(b, "self.loaded === 1") })
}

// inFrame runs js in the shop's frame, which is a process of its own as it is of another
// site.
func inFrame[T any](b context.Context, js string) (seen T, err error) {
	targets, err := chromedp.Targets(b)
	if err != nil {
		return seen, err
	}
	for _, info := range targets {
		if info.Type != "iframe" {
			continue
		}
		frame, cancel := chromedp.NewContext(b, chromedp.WithTargetID(info.TargetID), chromedp.WithDetachOnCancel())
		defer cancel()
		return chromedp.Run(frame, chromedp.Evaluate[T](js, func(p *runtime.EvaluateParams) { p.AwaitPromise = new(true) }))
	}
	return seen, fmt.Errorf("there is no frame of another site among %d targets", len(targets))
}

func mustInFrame[T any](t *testing.T, b context.Context, js string) T {
	t.Helper()
	seen, err := inFrame[T](b, js)
	if err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	return seen
}

// frameIs reports whether js is true in the frame; not so if it goes away meanwhile.
func frameIs(b context.Context, js string) bool {
	is, err := inFrame[bool](b, js)
	return err == nil && is
}

// What a waiting page in a frame tells of its visitor.
const (
	place = "document.querySelector('[data-v=positionText]').textContent"
	// arrival asks once more, as the page's own script does.
	arrival = `fetch(location.href, {headers: {Accept: 'application/json'}, cache: 'no-store'})
		.then(r => r.json()).then(w => w.cfWaitingRoom.arrival)`
	// fallsBehind asks several times at once, and is whether some place got was not the first.
	fallsBehind = `Promise.all([1, 2, 3].map(() => fetch(location.href, {headers: {Accept: 'application/json'}, cache: 'no-store'})
		.then(r => r.json()).then(w => w.cfWaitingRoom.position))).then(all => Math.max(...all) > 1)`
)

// TestBrowserIsLetInInAFrame of another site: it keeps its place from one request to the
// next, is let in when a place comes free, and stays in.
func TestBrowserIsLetInInAFrame(t *testing.T) {
	t.Parallel()
	const partitioned = "cookie-attributes: {samesite: none, secure: always, partitioned: true}"
	for _, tt := range []struct {
		name   string
		lines  string // of the shop's file
		refuse bool   // cookies of other sites
		apart  bool   // what the frame has is not what a tab has
	}{
		{"partitioned", partitioned, false, true},
		{"partitioned where cookies of other sites are refused", partitioned, true, true},
		{"defaults where cookies of other sites are taken", "", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := startEmbedding(t, tt.lines)
			b := e.browser(profile(t, tt.refuse))
			e.open(b, e.partner)
			first := onlyPass(t, b)
			if (first.PartitionKey != nil) != tt.apart || tt.apart && first.PartitionKey.TopLevelSite != "https://"+partnerHost {
				t.Errorf("the pass is kept for %+v", first.PartitionKey)
			}
			came := mustInFrame[string](t, b, arrival)
			e.awaitThat("the frame asks again, and is given another pass", patience, func() bool {
				return frameIs(b, howOftenAsked+" >= 4") && onlyPass(t, b).Value != first.Value
			})
			if got := mustInFrame[string](t, b, arrival); got != came || came == "" {
				t.Errorf("the visitor who came at %q came at %q", came, got)
			}
			if got := mustInFrame[string](t, b, place); got != "1" || e.room().Waiting != 1 {
				t.Errorf("place %s of %d, want that of the only one who waits", got, e.room().Waiting)
			}
			keep(t, b, "waiting in a frame "+tt.name)

			e.holderLeaves()
			e.awaitThat("the frame shows the shop", patience, func() bool { return frameIs(b, atShop) })
			keep(t, b, "let in in a frame "+tt.name)
			for range 2 {
				e.open(b, e.partner)
				if !frameIs(b, atShop) {
					t.Fatal("with the page around it loaded again, the shop is not there any more")
				}
			}
			if got := mustInFrame[string](t, b, "fetch('/stock').then(r => r.text())"); got != "12 tickets" {
				t.Errorf("a script of the shop gets %.80q", got)
			}
			if r := e.room(); r.Active != 1 || r.Waiting != 0 {
				t.Errorf("%d are inside and %d wait, want the one browser", r.Active, r.Waiting)
			}

			if err := chromedp.Do(b, chromedp.Navigate(e.url+"/"), chromedp.WaitVisible(chromedp.CSS("main, #shop"))); err != nil {
				t.Fatal(err)
			}
			if seesIn(b, atShop) == tt.apart {
				t.Errorf("in no frame: at the shop %v, a visitor of its own %v", !tt.apart, tt.apart)
			}
		})
	}
}

// TestBrowserWithoutAPassInAFrame: where the browser does not send the cookie in frames of
// other sites, each request is one of somebody new. What that looks like is in
// docs/pages.md.
func TestBrowserWithoutAPassInAFrame(t *testing.T) {
	t.Parallel()
	const strict, lax = "cookie-attributes: {samesite: strict}", "cookie-attributes: {samesite: lax}"
	for _, tt := range []struct {
		name   string
		lines  string // of the shop's file
		refuse bool   // cookies of other sites
	}{
		{"lax", lax, false},
		{"strict", strict, false},
		{"defaults where cookies of other sites are refused", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := startEmbedding(t, tt.lines)
			b := e.browser(profile(t, tt.refuse))
			e.open(b, e.partner)
			came := mustInFrame[string](t, b, arrival)
			e.awaitThat("the visitor falls behind those whom the node took it for", patience, func() bool {
				return frameIs(b, fallsBehind)
			})
			if got := mustInFrame[string](t, b, arrival); got <= came || came == "" {
				t.Errorf("somebody who came at %q is still there, as %q", came, got)
			}
			keep(t, b, "no pass in a frame "+tt.name)

			e.holderLeaves()
			loaded := mustInFrame[float64](t, b, whenLoaded)
			asked := mustInFrame[int](t, b, howOftenAsked)
			e.awaitThat("the frame asks on", patience, func() bool {
				if frameIs(b, atShop) {
					t.Fatal("the frame shows the shop") // for which it would need a pass
				}
				return frameIs(b, fmt.Sprintf("%s >= %d || %s > %f", howOftenAsked, asked+5, whenLoaded, loaded))
			})
			if all := passes(t, b); len(all) != 0 {
				t.Errorf("the browser keeps %+v", all)
			}
		})
	}

	t.Run("in a room that is not full", func(t *testing.T) {
		e := startEmbedding(t, lax)
		e.holderLeaves()
		e.await("has a free place", 20*time.Second, func(s node.Status) bool { return s.Rooms[0].Active == 0 && s.Rooms[0].Slots == 1 })
		b := e.browser(profile(t, false))
		e.open(b, e.partner)
		if !frameIs(b, atShop) {
			t.Fatal("the frame does not show the shop")
		}
		e.open(b, e.partner)
		if frameIs(b, atShop) || e.room().Active != 1 {
			t.Errorf("loaded again, at the shop %v, %d inside: want the first request to have the place", frameIs(b, atShop), e.room().Active)
		}
	})
}

// TestBrowserShowsNothingInAStrangersFrame, neither that there is a room nor what it says.
func TestBrowserShowsNothingInAStrangersFrame(t *testing.T) {
	t.Parallel()
	e := startEmbedding(t, "")
	b := e.browser(profile(t, false))
	const text = "document.body.innerText"
	e.open(b, e.partner)
	if got := mustInFrame[string](t, b, text); !strings.Contains(got, "You are in line") {
		t.Fatalf("the partner's page shows %q: this test shows nothing", got)
	}
	e.open(b, e.stranger)
	if got := mustInFrame[string](t, b, text); strings.Contains(got, "line") {
		t.Errorf("the stranger's page shows %q", got)
	}
	if got := mustInFrame[string](t, b, "location.href"); !strings.HasPrefix(got, "chrome-error:") {
		t.Errorf("the frame is at %s", got)
	}
	keep(t, b, "in a frame of a stranger")
}
