//go:build unix

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/httpfront/proof/check"
)

// testCase is one row of the table. Its room is its own.
type testCase struct {
	id     string        // name of its room, and the first label of its host
	what   string        // the row's title
	places int           // of its room
	length time.Duration // of a session; 0: a minute
	rule   string        // of its room; "": none

	newPass bool   // the visitor is let in with a new pass
	paged   bool   // the visitor gets a page with the code for pages
	hurts   bool   // the node does not answer
	notes   []note // of the whole row

	// run returns what the visitor sees, in a few words, and an error if that is not
	// what it has to be.
	run func(t *try) (string, error)
}

func (c testCase) host() string { return c.id + ".example" }

func (c testCase) session() time.Duration {
	if c.length == 0 {
		return time.Minute
	}
	return c.length
}

// try is one case with one proxy.
type try struct {
	ctx   context.Context
	stack *stack
	fe    frontEnd
	host  string
	room  string
}

func (t *try) visitor() *visitor { return &visitor{t: t} }

// fill has somebody take the only place. A node that was stopped a moment ago lets nobody
// in until it has looked around.
func (t *try) fill() (*visitor, error) {
	v := t.visitor()
	_, err := t.until(v, answer.fromSite)
	if err == nil && v.pass == "" {
		err = errors.New("a visitor in the room has no pass")
	}
	t.stack.site.take(t.host)
	return v, err
}

// unseen fails if the site was asked.
func (t *try) unseen() error {
	if a := t.stack.site.take(t.host); len(a) != 0 {
		return fmt.Errorf("the site was asked %d times", len(a))
	}
	return nil
}

// cases are all rows, in the order in which they run: those that hurt the node come
// last. Those of openCases follow.
func cases() []testCase {
	all := []testCase{
		{id: "new", what: "new, and there is a place", places: 5, newPass: true, run: newVisitor},
		{id: "full", what: "new, and the room is full", places: 1, paged: true, run: waits},
		{id: "json", what: "the same, a program that asks for JSON", places: 1, paged: true, run: waitsForJSON},
		{id: "again", what: "waiting, asks again", places: 1, run: asksAgain},
		{id: "turn", what: "waiting, and a place comes free", places: 1, newPass: true, run: comesIn},
		{id: "admitted", what: "admitted", places: 5, run: isIn},
		{id: "proof", what: "admitted, with a proof of admission made up", places: 5, run: forgedProof},
		{id: "sliding", what: "admitted, for longer than a session", places: 1, length: 2 * time.Second, newPass: true, run: slides},
		{id: "revoked", what: "revoked by the site", places: 1, paged: true, notes: []note{byPost}, run: revoked},
		{id: "preflight", what: "`OPTIONS` without a cookie, room full", places: 1, run: preflight},
		{id: "head", what: "`HEAD`, room full", places: 1, paged: true, run: head},
		{id: "post", what: "`POST` while waiting", places: 1, run: posts},
		{id: "order", what: "`POST` when admitted", places: 5, run: orders},
		{id: "forged", what: "forged pass, room full", places: 1, paged: true, run: forgedPass},
		{id: "country", what: "says to come from a country that a rule lets pass, room full", places: 1, paged: true, notes: []note{byRule}, rule: `ip.src.country eq "CH"`, run: choosesCountry},
		{id: "limited", what: "admitted, and beyond [a rate limit](rate-limits.md)", places: 5, run: beyondLimit},
	}
	return append(append(all, hostileCases()...), []testCase{
		{id: "slow", what: "our node is slow", places: 5, hurts: true, notes: []note{threeSeconds}, run: slow},
		{id: "down", what: "our node is down", places: 5, hurts: true, run: down},
	}...)
}

// openCases are those for which the examples are to let everybody in where no node
// answers.
func openCases() []testCase {
	return []testCase{
		{id: "open", what: "our node is down, and the example is set to let everybody in", places: 5, hurts: true, run: downAndOpen},
	}
}

// admittedBy checks an answer that let a visitor in.
func (t *try) admittedBy(a answer, passes int) error {
	got := t.stack.site.take(t.host)
	cookies := a.header.Values("Set-Cookie")
	switch {
	case !a.fromSite() || a.code != http.StatusOK:
		return fmt.Errorf("the site's answer is wanted: %v", a)
	case a.passes != passes:
		return fmt.Errorf("%d passes in %q, want %d", a.passes, cookies, passes)
	case !slices.ContainsFunc(cookies, func(c string) bool { return strings.HasPrefix(c, "basket=") }):
		return fmt.Errorf("the site's own cookie is not in %q", cookies)
	case passes > 0 && !t.fe.siteCaches && !strings.Contains(strings.Join(a.header.Values("Cache-Control"), ", "), "private"):
		return fmt.Errorf("a pass in an answer that may be stored: Cache-Control %q", a.header.Values("Cache-Control"))
	case passes == 0 && a.header.Get("Cache-Control") != "public, max-age=60":
		return fmt.Errorf("the site's Cache-Control became %q", a.header.Values("Cache-Control"))
	case len(got) != 1:
		return fmt.Errorf("the site was asked %d times", len(got))
	}
	return errors.Join(told(got[0]), t.proven(got[0]))
}

// forgedAddress is what every visitor sends in X-Forwarded-For, beside another scheme.
const forgedAddress = "203.0.113.66"

// told checks that the site is told by the proxy, and by nobody else, where a request
// comes from.
func told(a asked) error {
	by, proto := a.header.Values("X-Forwarded-For"), a.header.Values("X-Forwarded-Proto")
	if !slices.Equal(by, []string{"127.0.0.1"}) || !slices.Equal(proto, []string{"http"}) {
		return fmt.Errorf("the site is told of %q by %q", by, proto)
	}
	return nil
}

// forged is what every visitor sends for a proof.
const forged = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJtZSJ9."

// proven checks that the site got a proof of ours about whom the room has let in, and that
// it got no other.
func (t *try) proven(a asked) error {
	got := a.header.Values("Ropeline-Proof")
	if a.method == http.MethodOptions { // of which no room decides
		if len(got) != 0 {
			return fmt.Errorf("a preflight with proofs: %q", got)
		}
		return nil
	}
	if len(got) != 1 {
		return fmt.Errorf("proofs %q", got)
	}
	v, err := check.New(check.Config{JWKS: []string{"http://" + t.stack.node.verdicts + "/jwks.json"}, Room: t.room, Issuer: "ropeline"})
	if err != nil {
		return err
	}
	_, err = v.Check(t.ctx, got[0])
	return err
}

// held checks an answer of ours to somebody who has to wait.
func (t *try) held(a answer, code int) error {
	switch {
	case !a.isQueue():
		return fmt.Errorf("our answer is wanted: %v", a)
	case a.code != code:
		return fmt.Errorf("code %d, want %d", a.code, code)
	case a.passes != 1:
		return fmt.Errorf("%d passes in %q, want 1", a.passes, a.header.Values("Set-Cookie"))
	case a.header.Get("Refresh") == "" || a.header.Get("Refresh") != a.header.Get("Retry-After"):
		return fmt.Errorf("the fields Refresh %q and Retry-After %q", a.header.Get("Refresh"), a.header.Get("Retry-After"))
	case !slices.Equal(a.header.Values("Cache-Control"), []string{"private, no-store"}):
		return fmt.Errorf("the field Cache-Control %q", a.header.Values("Cache-Control"))
	case a.header.Get("Location") != "":
		return fmt.Errorf("sent on to %q", a.header.Get("Location"))
	}
	return t.unseen()
}

// pageCode is what pages have: the room's code, where the proxy does not read it as a
// verdict, or the one that it understands.
func (t *try) pageCode() int {
	if t.fe.pages {
		return roomCode
	}
	return http.StatusTooManyRequests
}

func newVisitor(t *try) (string, error) {
	a, err := t.visitor().ask(http.MethodGet)
	return a.String(), errors.Join(err, t.admittedBy(a, 1))
}

func waits(t *try) (string, error) {
	if _, err := t.fill(); err != nil {
		return "", err
	}
	a, err := t.visitor().ask(http.MethodGet)
	if err == nil && (!strings.HasPrefix(a.body, "<!doctype html>") || !strings.HasSuffix(strings.TrimSpace(a.body), "</html>")) {
		err = fmt.Errorf("the page is not whole: %d bytes", len(a.body))
	}
	if err == nil && a.header.Get("Content-Security-Policy") == "" {
		err = errors.New("the page has no Content-Security-Policy")
	}
	return a.String(), errors.Join(err, t.held(a, t.pageCode()))
}

// jsonAnswer is what our JSON says.
type jsonAnswer struct {
	Room struct {
		In       bool      `json:"inWaitingRoom"`
		Position int       `json:"position"`
		Arrival  time.Time `json:"arrival"`
	} `json:"cfWaitingRoom"`
}

// askJSON is ask for a program.
func (v *visitor) askJSON() (a answer, says jsonAnswer, err error) {
	if a, err = v.ask(http.MethodGet, "Accept", "application/json"); err == nil && a.isQueue() {
		err = json.Unmarshal([]byte(a.body), &says)
	}
	return a, says, err
}

func waitsForJSON(t *try) (string, error) {
	if _, err := t.fill(); err != nil {
		return "", err
	}
	a, says, err := t.visitor().askJSON()
	if err == nil && !says.Room.In {
		err = fmt.Errorf("the JSON says %+v", says)
	}
	return a.String(), errors.Join(err, t.held(a, t.pageCode()))
}

func asksAgain(t *try) (string, error) {
	if _, err := t.fill(); err != nil {
		return "", err
	}
	v := t.visitor()
	_, first, err := v.askJSON()
	if err != nil {
		return "", err
	}
	later := t.visitor() // comes behind
	_, behind, err := later.askJSON()
	if err != nil {
		return "", err
	}
	time.Sleep(1200 * time.Millisecond) // the interval of the rooms; sooner would not count
	a, second, err := v.askJSON()
	switch {
	case err != nil:
	case !second.Room.Arrival.Equal(first.Room.Arrival):
		err = fmt.Errorf("came at %v, and the next time at %v", first.Room.Arrival, second.Room.Arrival)
	case behind.Room.Arrival.Before(first.Room.Arrival):
		err = fmt.Errorf("who came later came at %v, before %v", behind.Room.Arrival, first.Room.Arrival)
	}
	return "same place", errors.Join(err, t.held(a, t.pageCode()))
}

func comesIn(t *try) (string, error) {
	first, err := t.fill()
	if err != nil {
		return "", err
	}
	v := t.visitor()
	if a, err := v.ask(http.MethodGet); err != nil || !a.isQueue() {
		return "", fmt.Errorf("two visitors in a room for one: %v, %w", a, err)
	}
	if err := t.stack.revoke(t.ctx, t.host, first.pass); err != nil {
		return "", err
	}
	a, err := t.until(v, answer.fromSite)
	return a.String(), errors.Join(err, t.admittedBy(a, 1))
}

// until has a visitor ask until the answer is as wanted.
func (t *try) until(v *visitor, wanted func(answer) bool) (a answer, err error) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(250 * time.Millisecond) {
		t.stack.site.take(t.host)
		if a, err = v.ask(http.MethodGet); err != nil || wanted(a) {
			return a, err
		}
	}
	return a, fmt.Errorf("it stays at %v", a)
}

func isIn(t *try) (string, error) {
	v, err := t.fill()
	if err != nil {
		return "", err
	}
	a, err := v.ask(http.MethodGet)
	return a.String(), errors.Join(err, t.admittedBy(a, 0))
}

// forgedProof is isIn in other words: every visitor here sends a proof made up.
func forgedProof(t *try) (string, error) {
	_, err := isIn(t)
	return "site, with our proof", err
}

// slides goes on for three sessions.
func slides(t *try) (string, error) {
	v, err := t.fill()
	if err != nil {
		return "", err
	}
	renewed := 0
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		a, err := v.ask(http.MethodGet)
		if err == nil && !a.fromSite() {
			err = fmt.Errorf("out after %d renewals: %v", renewed, a)
		}
		if err != nil {
			return "", err
		}
		renewed += a.passes
	}
	if renewed < 3 {
		return "", fmt.Errorf("%d renewed passes in three sessions", renewed)
	}
	return "site", nil
}

func revoked(t *try) (string, error) {
	v, err := t.fill()
	if err != nil {
		return "", err
	}
	old := v.pass
	next := t.visitor()
	if a, err := next.ask(http.MethodGet); err != nil || !a.isQueue() {
		return "", fmt.Errorf("two visitors in a room for one: %v, %w", a, err)
	}
	if err := t.stack.revoke(t.ctx, t.host, v.pass); err != nil {
		return "", err
	}
	if _, err := t.until(next, answer.fromSite); err != nil {
		return "", fmt.Errorf("the place is not free: %w", err)
	}
	t.stack.site.take(t.host)
	a, err := v.ask(http.MethodGet)
	if err == nil && v.pass == old {
		err = errors.New("the revoked pass stays")
	}
	return a.String(), errors.Join(err, t.held(a, t.pageCode()))
}

func preflight(t *try) (string, error) {
	if _, err := t.fill(); err != nil {
		return "", err
	}
	a, err := t.visitor().ask(http.MethodOptions, "Origin", "https://other.example", "Access-Control-Request-Method", "PUT")
	return a.String(), errors.Join(err, t.admittedBy(a, 0))
}

func head(t *try) (string, error) {
	if _, err := t.fill(); err != nil {
		return "", err
	}
	a, err := t.visitor().ask(http.MethodHead)
	if err == nil && a.body != "" {
		err = fmt.Errorf("a body of %d bytes", len(a.body))
	}
	return a.String(), errors.Join(err, t.held(a, t.pageCode()))
}

func posts(t *try) (string, error) {
	if _, err := t.fill(); err != nil {
		return "", err
	}
	a, err := t.visitor().send(http.MethodPost, "item=4", "Content-Type", "application/x-www-form-urlencoded")
	if err == nil && !strings.Contains(a.body, "has not been delivered") {
		err = errors.New("the page does not say that nothing was delivered")
	}
	return a.String(), errors.Join(err, t.held(a, http.StatusTooManyRequests))
}

func orders(t *try) (string, error) {
	v, err := t.fill()
	if err != nil {
		return "", err
	}
	content := strings.Repeat("item=4&", 10_000)
	a, err := v.send(http.MethodPost, content, "Content-Type", "application/x-www-form-urlencoded")
	got := t.stack.site.take(t.host)
	if err == nil && (len(got) != 1 || got[0].method != http.MethodPost || got[0].body != content) {
		err = fmt.Errorf("the site was asked %d times, or did not get the whole body", len(got))
	}
	return a.String(), err
}

// choosesCountry says so in the field that nodes read of requests that they proxy.
func choosesCountry(t *try) (string, error) {
	if _, err := t.fill(); err != nil {
		return "", err
	}
	a, err := t.visitor().ask(http.MethodGet, countryField, "CH")
	return a.String(), errors.Join(err, t.held(a, t.pageCode()))
}

func forgedPass(t *try) (string, error) {
	in, err := t.fill()
	if err != nil {
		return "", err
	}
	v := t.visitor()
	at := len(in.pass) / 2
	v.pass = in.pass[:at] + string(in.pass[at]^1) + in.pass[at+1:]
	a, err := v.ask(http.MethodGet)
	return a.String(), errors.Join(err, t.held(a, t.pageCode()))
}

// Of a rate limit of all nodes.
const (
	limitRequests = 3
	limitContent  = `{"error": "slow down"}`
	limitCode     = 420
)

// beyondLimit comes once more often than the limit says, and again: each request counts
// once, however often the proxy asks about it.
func beyondLimit(t *try) (string, error) {
	v := t.visitor()
	for i := range limitRequests {
		if a, err := v.ask(http.MethodGet); err != nil || !a.fromSite() {
			return "", fmt.Errorf("request %d of %d within the limit: %v, %w", i+1, limitRequests, a, err)
		}
	}
	t.stack.site.take(t.host)
	var a answer
	for range 2 {
		var err error
		if a, err = v.ask(http.MethodGet); err != nil {
			return "", err
		}
		switch {
		case a.code != limitCode || a.body != limitContent || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json"):
			return "", fmt.Errorf("the rule's answer is wanted: %v, %q of type %q", a, a.body, a.header.Get("Content-Type"))
		case a.header.Get("Retry-After") == "" || !strings.Contains(a.header.Get("RateLimit"), `"limited";r=0;t=`):
			return "", fmt.Errorf("the fields Retry-After %q and RateLimit %q", a.header.Get("Retry-After"), a.header.Get("RateLimit"))
		case !strings.Contains(a.header.Get("Cache-Control"), "no-store"):
			return "", fmt.Errorf("the field Cache-Control %q", a.header.Get("Cache-Control"))
		}
	}
	return fmt.Sprintf("rule's answer, %d", a.code), t.unseen()
}
