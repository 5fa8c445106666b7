package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ropeline/ropeline/httpfront/browsertest"
)

func newBrowser(t *testing.T, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	return browsertest.New(t, 1000, 700, more...)
}

// What a page tells of itself, also where its own scripts do not run.
const (
	whenLoaded    = "performance.timeOrigin"
	howOftenAsked = "performance.getEntriesByType('resource').filter(e => e.initiatorType === 'fetch').length"
)

// TestBrowserWaitsAndIsLetIn opens the site while it is full. The page says so,
// and the browser gets to the site by itself once the other visitor's session is
// over.
func TestBrowserWaitsAndIsLetIn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		noScript bool
	}{{"with JavaScript", false}, {"without JavaScript", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx := newBrowser(t)
			p := serveNode(t, "one", "a", "--origin", startOrigin(t), "--data-dir", t.TempDir(),
				"--total-active-users", "1", "--session-duration", "10s", "--refresh-interval", "2s", "--bucket-span", "12s")
			b := &browsertest.Tab{T: t, Ctx: ctx}
			if tt.noScript {
				b.NoScript()
			}
			get(t, p.http, nil) // once the browser is up, so that it finds the session young
			if err := chromedp.Do(ctx, chromedp.Navigate("http://"+p.http+"/"), chromedp.WaitVisible(chromedp.CSS("main"))); err != nil {
				t.Fatalf("open the site: %v", err)
			}
			loaded := look(t, ctx, chromedp.Evaluate[float64](whenLoaded))
			waiting := look(t, ctx, chromedp.Text(chromedp.CSS("main")))
			b.Keep("waiting " + tt.name)
			// Nothing is clicked from here on. A script asks in the background; without
			// one the browser loads the page again.
			time.Sleep(3500 * time.Millisecond)
			reloaded := look(t, ctx, chromedp.Evaluate[float64](whenLoaded)) != loaded
			asked := look(t, ctx, chromedp.Evaluate[int](howOftenAsked))
			if reloaded != tt.noScript || (asked > 0) == tt.noScript {
				t.Errorf("after more than one interval: loaded again %v, asked by script %d times", reloaded, asked)
			}
			if err := chromedp.Do(ctx, chromedp.WaitVisible(chromedp.ID("shop"))); err != nil {
				t.Fatalf("the shop never came: %v; the page said %q", err, waiting)
			}
			arrived := look(t, ctx, chromedp.Text(chromedp.ID("shop")))
			if !strings.Contains(waiting, "1") || arrived != "Welcome to the shop" {
				t.Errorf("the page said %q, then the site %q", waiting, arrived)
			}
		})
	}
}

func look[T any](t *testing.T, ctx context.Context, what chromedp.Action[T]) T {
	t.Helper()
	seen, err := browsertest.Look(ctx, what)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// keep stores a screenshot as an artifact.
func keep(t *testing.T, browser context.Context, name string) {
	t.Helper()
	(&browsertest.Tab{T: t, Ctx: browser}).Keep(name)
}
