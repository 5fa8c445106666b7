package dashboard

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdpinput "github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// newBrowser starts a headless Chromium with a profile of its own. Without one on the
// machine the test is skipped: it installs nothing.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium in PATH; on Debian: apt-get install chromium")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1360, 900),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("enable-precise-memory-info", true),
		chromedp.Flag("hide-scrollbars", false),
	)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 15*time.Minute)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // starts it, for tabs to be in one browser
		t.Fatal(err)
	}
	return ctx
}

// tab is a tab of a browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

func newTab(t *testing.T, browser context.Context) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	b := &tab{t, ctx}
	b.before(watching)
	return b
}

// watching notes in every page what goes wrong in it, and which requests it makes.
const watching = `
self.wrong = []
addEventListener('error', e => wrong.push('error: ' + e.message))
addEventListener('unhandledrejection', e => wrong.push('rejection: ' + e.reason))
addEventListener('securitypolicyviolation', e => wrong.push('policy: ' + e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sourceFile + ':' + e.lineNumber))
`

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
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

// cdpAsk is a command whose answer is of interest.
func cdpAsk[P, R any](b *tab, c cdp.Command[P, R], params P) (answer R) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) (err error) {
		answer, err = cdp.Call(ctx, target, c, params)
		return err
	}))
	return answer
}

// before has js run before every page.
func (b *tab) before(js string) {
	b.t.Helper()
	b.do(cdpCall(cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: js}))
}

// signedIn has the pages of the tab find a token that was entered before.
func (b *tab) signedIn(token string) {
	b.t.Helper()
	b.before(fmt.Sprintf("try { sessionStorage.setItem('ropeline-token', %q) } catch {}", token))
}

// open goes to a view of the dashboard, and returns when it shows something.
func (b *tab) open(s *stage, view string) {
	b.t.Helper()
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(s.url("/dashboard/"+view)))
	b.awaits("document.querySelector('#health')?.hidden === false || !!document.querySelector('dialog')")
}

func see[T any](b *tab, js string) T {
	b.t.Helper()
	await := func(p *runtime.EvaluateParams) { p.AwaitPromise = new(true) }
	seen, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](js, await))
	if err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return seen
}

// run runs js for what it does.
func (b *tab) run(js string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](js))
}

func (b *tab) text(selector string) string {
	b.t.Helper()
	return see[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? '(there is none)'", selector))
}

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

// click clicks on the first element of that selector whose text has label.
func (b *tab) click(selector, label string) {
	b.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%q)].find(e => e.textContent.includes(%q))", selector, label)
	b.awaits("!!" + find)
	b.run(find + ".click()")
}

// fill writes into a field, as a person does.
func (b *tab) fill(selector, value string) {
	b.t.Helper()
	b.run(fmt.Sprintf(`{const e = document.querySelector(%q); e.focus(); e.value = %q; e.dispatchEvent(new Event('input', {bubbles: true}))}`, selector, value))
}

// pressable are those that a test presses by name.
var pressable = map[string]int64{"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}

// press presses a key.
func (b *tab) press(key string) {
	b.t.Helper()
	text := ""
	switch key {
	case "Enter":
		text = "\r"
	case " ":
		text = " "
	}
	down := cdpinput.DispatchKeyEventParams{Type: "keyDown", Key: key, Code: strings.ReplaceAll(key, " ", "Space"), WindowsVirtualKeyCode: pressable[key], Text: text}
	up := down
	up.Type, up.Text = "keyUp", ""
	b.do(cdpCall(cdpinput.DispatchKeyEvent, down), cdpCall(cdpinput.DispatchKeyEvent, up))
}

// keep stores a screenshot of the whole page as an artifact; `go test -artifacts` keeps
// it for good.
func (b *tab) keep(name string) {
	b.t.Helper()
	b.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(b.t.ArtifactDir(), strings.ReplaceAll(name, " ", "-")+".png")
	if err := os.WriteFile(path, picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// likes sets media features, such as prefers-color-scheme.
func (b *tab) likes(features ...string) {
	b.t.Helper()
	var list []*emulation.MediaFeature
	for i := 0; i < len(features); i += 2 {
		list = append(list, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	b.do(cdpCall(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: list}))
}

func (b *tab) sized(width, height int64, mobile bool) {
	b.t.Helper()
	b.do(cdpCall(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 2, Mobile: mobile}))
}

// wantNothingWrong reports errors of the page, and what its policy kept it from.
func (b *tab) wantNothingWrong() {
	b.t.Helper()
	if wrong := see[[]string](b, "wrong"); len(wrong) > 0 {
		b.t.Errorf("in the page: %v", wrong)
	}
}

// finding is what the checker says of a rule that is broken.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// checkAccess has the page checked by axe-core, the best practices among its rules too.
// Only trifles are let pass.
func (b *tab) checkAccess() {
	b.t.Helper()
	packed, err := os.Open("../testdata/axe/axe.min.js.gz")
	if err != nil {
		b.t.Fatal(err)
	}
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	if err != nil {
		b.t.Fatal(err)
	}
	axe, err := io.ReadAll(z)
	if err != nil {
		b.t.Fatal(err)
	}
	b.run(string(axe) + ";0")
	found := see[struct{ Violations, Passes []finding }](b, `axe.run({resultTypes: ['violations']}).then(r => ({
		violations: r.violations.map(v => ({...v, nodes: v.nodes.slice(0, 3)})), passes: r.passes.map(p => ({id: p.id}))}))`)
	if len(found.Passes) < 10 {
		b.t.Errorf("the checker has checked %d rules only", len(found.Passes))
	}
	for _, f := range found.Violations {
		if f.Impact != "minor" {
			b.t.Errorf("%s (%s): %s: %v", f.ID, f.Impact, f.Help, f.Nodes)
		}
	}
}

func (b *tab) noScript() {
	b.t.Helper()
	b.do(cdpCall(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
}
