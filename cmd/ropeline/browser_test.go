package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// newBrowser starts a headless Chromium with a profile of its own. Without one
// on the machine the test is skipped: it installs nothing.
func newBrowser(t *testing.T, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no chromium, chromium-browser or google-chrome in PATH; on Debian: apt-get install chromium")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1000, 700),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
	)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), append(opts, more...)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
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
	for _, tt := range []struct {
		name     string
		noScript bool
	}{{"with JavaScript", false}, {"without JavaScript", true}} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := newBrowser(t)
			p := startNode(t, "one", "a", "--origin", startOrigin(t), "--data-dir", t.TempDir(),
				"--total-active-users", "1", "--session-duration", "10s", "--refresh-interval", "2s", "--bucket-span", "12s")
			p.await("is ready", 20*time.Second, ready)
			noScript := chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
				_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled,
					emulation.SetScriptExecutionDisabledParams{Value: tt.noScript})
				return err
			})
			if err := chromedp.Do(ctx, noScript); err != nil {
				t.Fatalf("start the browser: %v", err)
			}
			get(t, p.http, nil) // once the browser is up, so that it finds the session young
			if err := chromedp.Do(ctx, chromedp.Navigate("http://"+p.http+"/"), chromedp.WaitVisible(chromedp.CSS("main"))); err != nil {
				t.Fatalf("open the site: %v", err)
			}
			loaded := look(t, ctx, chromedp.Evaluate[float64](whenLoaded))
			waiting := look(t, ctx, chromedp.Text(chromedp.CSS("main")))
			page := look(t, ctx, chromedp.CaptureScreenshot())
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
			keep(t, "waiting "+tt.name+".png", page)
			if !strings.Contains(waiting, "1") || arrived != "Welcome to the shop" {
				t.Errorf("the page said %q, then the site %q", waiting, arrived)
			}
		})
	}
}

func look[T any](t *testing.T, ctx context.Context, what chromedp.Action[T]) T {
	t.Helper()
	seen, err := chromedp.Run(ctx, what)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// keep stores a test's artifact; `go test -artifacts` keeps it for good.
func keep(t *testing.T, name string, content []byte) {
	t.Helper()
	path := filepath.Join(t.ArtifactDir(), strings.ReplaceAll(name, " ", "-"))
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
