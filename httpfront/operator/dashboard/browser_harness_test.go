package dashboard

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/ropeline/ropeline/httpfront/browsertest"
)

func newBrowser(t *testing.T) context.Context {
	t.Helper()
	return browsertest.New(t, 1360, 900, chromedp.Flag("enable-precise-memory-info", true), chromedp.Flag("hide-scrollbars", false))
}

// tab is a tab of a browser that looks at the dashboard of a stage.
type tab struct{ *browsertest.Tab }

func newTab(t *testing.T, browser context.Context) *tab {
	t.Helper()
	b := &tab{browsertest.NewTab(t, browser)}
	b.Before(watching)
	return b
}

// sitDown is somebody at a browser who may change things.
func sitDown(t *testing.T, mesh *fakeMesh) (*stage, *tab) {
	t.Helper()
	s, b := serve(t, mesh, nil), newTab(t, newBrowser(t))
	b.signedIn(someToken)
	return s, b
}

// look opens a view of the dashboard of a mesh in a browser, for somebody who may change things.
func look(t *testing.T, mesh *fakeMesh, view string) (*stage, *tab) {
	t.Helper()
	s, b := sitDown(t, mesh)
	b.open(s, view)
	return s, b
}

// watching notes in every page what goes wrong in it, and which requests it makes.
const watching = `
self.wrong = []
addEventListener('error', e => wrong.push('error: ' + e.message))
addEventListener('unhandledrejection', e => wrong.push('rejection: ' + e.reason))
addEventListener('securitypolicyviolation', e => wrong.push('policy: ' + e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sourceFile + ':' + e.lineNumber))
`

// signedIn has the pages of the tab find a token that was entered before.
func (b *tab) signedIn(token string) {
	b.T.Helper()
	b.Before(fmt.Sprintf("try { sessionStorage.setItem('ropeline-token', %q) } catch {}", token))
}

// open goes to a view of the dashboard, and returns when it shows something.
func (b *tab) open(s *stage, view string) {
	b.T.Helper()
	b.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(s.url("/dashboard/"+view)))
	b.Awaits("document.querySelector('#health')?.hidden === false || !!document.querySelector('dialog')")
}

// press presses a key.
func (b *tab) press(key string) {
	b.T.Helper()
	b.Do(chromedp.KeyEvent(key))
}

// settle lets the page draw what it knows, and stores a screenshot.
func (b *tab) settle(name string) {
	b.T.Helper()
	b.Run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
	b.Keep(name)
}

// wantNothingWrong reports errors of the page, and what its policy kept it from.
func (b *tab) wantNothingWrong() {
	b.T.Helper()
	if wrong := browsertest.See[[]string](b.Tab, "wrong"); len(wrong) > 0 {
		b.T.Errorf("in the page: %v", wrong)
	}
}
