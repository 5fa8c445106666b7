package browsertest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a test waits for what a page is to do.
const patience = 30 * time.Second

// Tab is a tab of a browser. Its methods end the test if the browser cannot do what they want.
type Tab struct {
	T   testing.TB
	Ctx context.Context
}

// NewTab opens a tab in the browser of New. It is closed with the test.
func NewTab(t testing.TB, browser context.Context) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	return &Tab{t, ctx}
}

// Do takes steps, one after the other.
func (b *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	if err := chromedp.Do(b.Ctx, steps...); err != nil {
		b.T.Fatal(err)
	}
}

// Call is a step: a command of the browser's protocol that returns nothing of interest.
func Call[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, c, params)
		return err
	})
}

// Ask gives such a command whose answer is of interest.
func Ask[P, R any](b *Tab, c cdp.Command[P, R], params P) (answer R) {
	b.T.Helper()
	b.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) (err error) {
		answer, err = cdp.Call(ctx, target, c, params)
		return err
	}))
	return answer
}

// See returns what JavaScript comes to in the page, and what a promise comes to.
func See[T any](b *Tab, js string) T {
	b.T.Helper()
	await := func(p *runtime.EvaluateParams) { p.AwaitPromise = new(true) }
	seen, err := Look(b.Ctx, chromedp.Evaluate[T](js, await))
	if err != nil {
		b.T.Fatalf("%s: %v", js, err)
	}
	return seen
}

// Look returns what a page shows. It looks again if the page goes away meanwhile, as one does that
// loads itself again.
func Look[T any](ctx context.Context, what chromedp.Action[T]) (T, error) {
	for end := time.Now().Add(patience); ; {
		seen, err := chromedp.Run(ctx, what)
		if err == nil || !goneMeanwhile(err) || time.Now().After(end) {
			return seen, err
		}
	}
}

// goneMeanwhile is whether Chromium says that the page of a command was replaced before its answer.
func goneMeanwhile(err error) bool {
	for _, said := range []string{
		"Cannot find context with specified id", "Execution context was destroyed", "Inspected target navigated or closed",
	} {
		if strings.Contains(err.Error(), said) {
			return true
		}
	}
	return false
}

// Run runs JavaScript for what it does.
func (b *Tab) Run(js string) {
	b.T.Helper()
	b.Do(chromedp.Evaluate[chromedp.Void](js))
}

// Before has JavaScript run before every page from now on.
func (b *Tab) Before(js string) {
	b.T.Helper()
	b.Do(Call(cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: js}))
}

// Text returns what an element shows.
func (b *Tab) Text(selector string) string {
	b.T.Helper()
	return See[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? '(there is none)'", selector))
}

// Finds checks what JavaScript comes to in the page; what names it.
func (b *Tab) Finds(what, js, want string) {
	b.T.Helper()
	if got := See[string](b, js); got != want {
		b.T.Errorf("%s is %q, want %q", what, got, want)
	}
}

// Awaits waits until JavaScript is true. It asks again if the page goes away meanwhile.
func (b *Tab) Awaits(js string) {
	b.T.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if is, err := chromedp.Run(b.Ctx, chromedp.Evaluate[bool](js)); err == nil && is {
			return
		}
	}
	b.Keep("stuck")
	b.T.Fatalf("never so: %s; the page says\n%s", js, See[string](b, "document.body.innerText"))
}

// Shows waits until what an element shows has all of parts.
func (b *Tab) Shows(selector string, parts ...string) {
	b.T.Helper()
	for _, part := range parts {
		b.Awaits(fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.innerText.includes(%q))", selector, part))
	}
}

// Click clicks on the first element of that selector whose text has label, once there is one.
func (b *Tab) Click(selector, label string) {
	b.T.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%q)].find(e => e.textContent.includes(%q))", selector, label)
	b.Awaits("!!" + find)
	b.Run(find + ".click()")
}

// Fill writes into a field, as a person does, once there is one.
func (b *Tab) Fill(selector, value string) {
	b.T.Helper()
	b.Awaits(fmt.Sprintf("!!document.querySelector(%q)", selector))
	b.Run(fmt.Sprintf(`{const e = document.querySelector(%q); e.focus(); e.value = %q; e.dispatchEvent(new Event('input', {bubbles: true}))}`, selector, value))
}

func keeping() bool {
	f := flag.Lookup("test.artifacts")
	return f != nil && f.Value.String() == "true"
}

// Keep stores a screenshot as an artifact. Only `go test -artifacts` keeps these, and taking one is most
// of the work of a look at a page, so without it there is none.
func (b *Tab) Keep(name string) {
	b.T.Helper()
	if !keeping() {
		return
	}
	picture, err := chromedp.Run(b.Ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.T.Fatal(err)
	}
	path := filepath.Join(b.T.ArtifactDir(), strings.ReplaceAll(name, " ", "-")+".png")
	if err := os.WriteFile(path, picture, 0o644); err != nil {
		b.T.Fatal(err)
	}
}

// Likes sets media features by name and value, such as prefers-color-scheme and dark.
func (b *Tab) Likes(features ...string) {
	b.T.Helper()
	var list []*emulation.MediaFeature
	for i := 0; i < len(features); i += 2 {
		list = append(list, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	b.Do(Call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: list}))
}

// Sized makes the page that wide and high, in CSS pixels; of two by two dots where screenshots are kept.
func (b *Tab) Sized(width, height int64, mobile bool) {
	b.T.Helper()
	dots := 1.0
	if keeping() {
		dots = 2
	}
	b.Do(Call(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: dots, Mobile: mobile}))
}

// NoScript has pages run no JavaScript of their own from now on.
func (b *Tab) NoScript() {
	b.T.Helper()
	b.Do(Call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
}
