// Package browsertest lets tests look at pages in a real browser. It installs nothing: without a
// Chromium on the machine they are skipped.
package browsertest

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// names are those that a Chromium may have, the one that is tested with first.
var names = []string{"chromium", "chromium-browser", "google-chrome"}

// lifetime bounds how long a browser runs.
const lifetime = 15 * time.Minute

// oneWay are the tests that run with -short as well: one good way through the waiting page, with a real
// node, and one through the dashboard.
var oneWay = []string{"TestBrowserWaitsAndIsLetIn", "TestBrowserFollowsARoom"}

// New starts a headless browser with a profile of its own, and windows of width and height in
// CSS pixels. It ends with the test.
func New(t testing.TB, width, height int, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	if name, _, _ := strings.Cut(t.Name(), "/"); testing.Short() && !slices.Contains(oneWay, name) {
		t.Skip("with -short one way through the pages is looked at; make test-browser looks at all")
	}
	path := ""
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skipf("none of %v in PATH; on Debian: apt-get install chromium", names)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(width, height),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
	)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), append(opts, more...)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, lifetime)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // starts it, for tabs to be in one browser
		t.Fatalf("start the browser: %v", err)
	}
	return ctx
}
