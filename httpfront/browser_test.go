package httpfront

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
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
	ctx, cancel = context.WithTimeout(ctx, 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestBrowserFollowsSwitches keeps one page open while the room goes through
// everything that it can be in. The page is loaded once and follows by its
// script, until the room rejects: then it asks no more.
func TestBrowserFollowsSwitches(t *testing.T) {
	ctx := newBrowser(t)
	all := situations()
	var now atomic.Pointer[waiting]
	var asked atomic.Int32
	r := newRoom(func(_ node.Pass, _ bool, at time.Time) node.Verdict {
		asked.Add(1)
		w := now.Load()
		v := w.verdict
		v.View = &room.View{Settings: *w.settings, Event: w.event()}
		// The situation is at noon, and the page asks now.
		for _, t := range []*time.Time{&v.View.Event.Start, &v.View.Event.End, &v.View.Event.PrequeueStart, &v.Pass.Arrival, &v.Pass.LastPoll} {
			if !t.IsZero() {
				*t = at.Add(t.Sub(noon))
			}
		}
		if v.Refresh > 0 {
			v.Refresh = time.Second
		}
		return v
	})
	f := serve(t, fakeRooms{room: r}, http.HandlerFunc(echo))

	var loaded float64
	for i, step := range []struct{ situation, shows string }{
		{"fifo", "You are in line|1,235|1,234|Estimated wait|1 hour and 1 minute"},
		{"random", "You are waiting to come in|random|5 minutes - 1 hour and 12 minutes"},
		{"pre-queue that shuffles", "It has not started yet|at random|Starts in|11 minutes"},
		{"pre-queue in order", "It has not started yet|in the order|41|Starts in|11 minutes"},
		{"queue all", "Nobody is let in at the moment|1,235|not known yet"},
		{"reject", "Nobody is let in right now|come back later"},
	} {
		w := all[step.situation]
		now.Store(&w)
		if i == 0 {
			if err := chromedp.Do(ctx, chromedp.Navigate(f.url("/")), chromedp.WaitVisible(chromedp.CSS("main"))); err != nil {
				t.Fatalf("open the page: %v", err)
			}
			loaded = see(t, ctx, chromedp.Evaluate[float64]("performance.timeOrigin"))
		}
		var text string
		waitFor(t, "the page to show "+step.shows, func() bool {
			text = see(t, ctx, chromedp.Text(chromedp.CSS("main")))
			for part := range strings.SplitSeq(step.shows, "|") {
				if !strings.Contains(text, part) {
					return false
				}
			}
			return true
		})
		t.Logf("%s:\n%s", step.situation, text)
		name := strings.ReplaceAll(step.situation, " ", "-") + ".png"
		if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name), see(t, ctx, chromedp.CaptureScreenshot()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(see(t, ctx, chromedp.Text(chromedp.CSS("main"))), "Estimated wait") {
		t.Error("a wait is shown where nobody waits")
	}
	before := asked.Load()
	time.Sleep(2500 * time.Millisecond)
	if n := asked.Load() - before; n > 0 {
		t.Errorf("the page asked %d times more after it was turned away", n)
	}
	if see(t, ctx, chromedp.Evaluate[float64]("performance.timeOrigin")) != loaded {
		t.Error("the page was loaded again")
	}
}

func see[T any](t *testing.T, ctx context.Context, what chromedp.Action[T]) T {
	t.Helper()
	seen, err := chromedp.Run(ctx, what)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}
