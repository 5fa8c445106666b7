//go:build unix

package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/httpfront/forwarding"
	"github.com/ropeline/ropeline/httpfront/gate/proof/check"
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

	empty bool // nobody is in before

	// run returns what the visitor sees, in a few words. If that is not what it has to be, it fails: see [rig.Must].
	run func(t *try) string
}

func (c testCase) host() string { return c.id + ".example" }

func (c testCase) session() time.Duration {
	return cmp.Or(c.length, time.Minute)
}

// try is one case with one proxy.
type try struct {
	ctx   context.Context
	stack *stack
	fe    frontEnd
	host  string
	room  string
	in    *visitor // who is in, and has the only place where there is but one; nil: nobody
}

// do runs a case.
func (s *stack) do(ctx context.Context, fe frontEnd, c testCase) (seen string, err error) {
	err = rig.Try(func() {
		t := &try{ctx: ctx, stack: s, fe: fe, host: c.host(), room: c.id}
		if !c.empty {
			t.fill()
		}
		seen = c.run(t)
	})
	return seen, err
}

func (t *try) visitor() *visitor { return &visitor{t: t} }

// must fails with what is wrong unless ok.
func (t *try) must(ok bool, wrong string, args ...any) {
	if !ok {
		rig.Must(fmt.Errorf(wrong, args...))
	}
}

// fill has somebody come in. A node that was stopped a moment ago lets nobody
// in until it has looked around.
func (t *try) fill() {
	t.in = t.visitor()
	t.until(t.in, answer.fromSite)
	t.must(t.in.pass != "", "a visitor in the room has no pass")
	t.stack.site.take(t.host)
}

// next is somebody who comes, and has to wait.
func (t *try) next() *visitor {
	v := t.visitor()
	a := v.ask(http.MethodGet)
	t.must(a.isQueue(), "two visitors in a room for one: %v", a)
	return v
}

// unseen fails if the site was asked.
func (t *try) unseen() {
	n := len(t.stack.site.take(t.host))
	t.must(n == 0, "the site was asked %d times", n)
}

// cases are all rows, in the order in which they run: those that hurt the node come
// last. Those of openCases follow.
func cases() []testCase {
	return []testCase{
		{id: "new", empty: true, what: "new, and there is a place", places: 5, newPass: true, run: newVisitor},
		{id: "full", what: "new, and the room is full", places: 1, paged: true, run: waits},
		{id: "json", what: "the same, a program that asks for JSON", places: 1, paged: true, run: waitsForJSON},
		{id: "again", what: "waiting, asks again", places: 1, run: asksAgain},
		{id: "turn", what: "waiting, and a place comes free", places: 1, newPass: true, run: comesIn},
		{id: "admitted", what: "admitted", places: 5, run: isIn},
		{id: "proof", what: "admitted, with a proof of admission made up", places: 5, run: forgedProof},
		{id: "told", what: "admitted, and tells of other addresses, hosts and protocols", places: 5, run: tellsOfOthers},
		{id: "sliding", what: "admitted, for longer than a session", places: 1, length: 2 * time.Second, newPass: true, run: slides},
		{id: "revoked", what: "revoked by the site", places: 1, paged: true, notes: []note{byPost}, run: revoked},
		{id: "preflight", what: "a preflight, which has no cookie, room full", places: 1, run: preflight},
		{id: "options", what: "`OPTIONS` that is no preflight, room full", places: 1, paged: true, run: noPreflight},
		{id: "head", what: "`HEAD`, room full", places: 1, paged: true, run: head},
		{id: "post", what: "`POST` while waiting", places: 1, run: posts},
		{id: "order", what: "`POST` when admitted", places: 5, run: orders},
		{id: "forged", what: "forged pass, room full", places: 1, paged: true, run: forgedPass},
		{id: "country", what: "says to come from a country that a rule lets pass, room full", places: 1, paged: true, notes: []note{byRule}, rule: `ip.src.country eq "CH"`, run: choosesCountry},
		{id: "limited", empty: true, what: "admitted, and beyond [a rate limit](rate-limits.md)", places: 5, run: beyondLimit},
		{id: "slow", what: "our node is slow", places: 5, hurts: true, notes: []note{threeSeconds}, run: slow},
		{id: "down", what: "our node is down", places: 5, hurts: true, run: down},
	}
}

// openCases are those for which the examples are to let everybody in where no node
// answers.
func openCases() []testCase {
	return []testCase{
		{id: "open", empty: true, what: "our node is down, and the example is set to let everybody in", places: 5, hurts: true, run: downAndOpen},
	}
}

// admittedBy checks an answer that let a visitor in.
func (t *try) admittedBy(a answer, passes int) {
	got := t.stack.site.take(t.host)
	cookies, stored := a.header.Values("Set-Cookie"), a.header.Values("Cache-Control")
	t.must(a.fromSite() && a.code == http.StatusOK, "the site's answer is wanted: %v", a)
	t.must(a.passes == passes, "%d passes in %q, want %d", a.passes, cookies, passes)
	t.must(slices.ContainsFunc(cookies, func(c string) bool { return strings.HasPrefix(c, "basket=") }), "the site's own cookie is not in %q", cookies)
	t.must(passes == 0 || t.fe.siteCaches || strings.Contains(strings.Join(stored, ", "), "private"), "a pass in an answer that may be stored: Cache-Control %q", stored)
	t.must(passes > 0 || a.header.Get("Cache-Control") == "public, max-age=60", "the site's Cache-Control became %q", stored)
	t.must(len(got) == 1, "the site was asked %d times", len(got))
	t.told(got[0])
	t.proven(got[0])
}

// forgedAddress is what every visitor sends in X-Forwarded-For, beside another scheme.
const forgedAddress = "203.0.113.66"

// told checks that the site is told by the proxy, and by nobody else, where a request
// comes from.
func (t *try) told(a asked) {
	by, proto := a.header.Values("X-Forwarded-For"), a.header.Values("X-Forwarded-Proto")
	t.must(slices.Equal(by, []string{"127.0.0.1"}) && slices.Equal(proto, []string{"http"}), "the site is told of %q by %q", by, proto)
}

// forged is what every visitor sends for a proof.
const forged = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJtZSJ9."

// proven checks that the site got a proof of ours about whom the room has let in, and that
// it got no other.
func (t *try) proven(a asked) {
	got := a.header.Values("Ropeline-Proof")
	if a.method == http.MethodOptions { // of which no room decides
		t.must(len(got) == 0, "a preflight with proofs: %q", got)
		return
	}
	t.must(len(got) == 1, "proofs %q", got)
	v := rig.Got(check.New(check.Config{JWKS: []string{"http://" + t.stack.node.verdicts + "/jwks.json"}, Room: t.room, Issuer: "ropeline"}))
	_, err := v.Check(t.ctx, got[0])
	rig.Must(err)
}

// held checks an answer of ours to somebody who has to wait.
func (t *try) held(a answer, code int) {
	refresh, retry := a.header.Get("Refresh"), a.header.Get("Retry-After")
	t.must(a.isQueue(), "our answer is wanted: %v", a)
	t.must(a.code == code, "code %d, want %d", a.code, code)
	t.must(a.passes == 1, "%d passes in %q, want 1", a.passes, a.header.Values("Set-Cookie"))
	t.must(refresh != "" && refresh == retry, "the fields Refresh %q and Retry-After %q", refresh, retry)
	t.must(slices.Equal(a.header.Values("Cache-Control"), []string{"private, no-store"}), "the field Cache-Control %q", a.header.Values("Cache-Control"))
	t.must(a.header.Get("Location") == "", "sent on to %q", a.header.Get("Location"))
	t.unseen()
}

// heldByPage is held for pages, which have the room's code where the proxy does not read it as a
// verdict, or the one that it understands.
func (t *try) heldByPage(a answer) string {
	code := http.StatusTooManyRequests
	if t.fe.pages {
		code = roomCode
	}
	t.held(a, code)
	return a.String()
}

func newVisitor(t *try) string {
	a := t.visitor().ask(http.MethodGet)
	t.admittedBy(a, 1)
	return a.String()
}

func waits(t *try) string {
	a := t.visitor().ask(http.MethodGet)
	t.must(strings.HasPrefix(a.body, "<!doctype html>") && strings.HasSuffix(strings.TrimSpace(a.body), "</html>"), "the page is not whole: %d bytes", len(a.body))
	t.must(a.header.Get("Content-Security-Policy") != "", "the page has no Content-Security-Policy")
	return t.heldByPage(a)
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
func (v *visitor) askJSON() (a answer, says jsonAnswer) {
	if a = v.ask(http.MethodGet, "Accept", "application/json"); a.isQueue() {
		rig.Must(json.Unmarshal([]byte(a.body), &says))
	}
	return a, says
}

func waitsForJSON(t *try) string {
	a, says := t.visitor().askJSON()
	t.must(says.Room.In, "the JSON says %+v", says)
	return t.heldByPage(a)
}

func asksAgain(t *try) string {
	v := t.visitor()
	_, first := v.askJSON()
	_, behind := t.visitor().askJSON()  // who comes later
	time.Sleep(1200 * time.Millisecond) // the interval of the rooms; sooner would not count
	a, second := v.askJSON()
	t.must(second.Room.Arrival.Equal(first.Room.Arrival), "came at %v, and the next time at %v", first.Room.Arrival, second.Room.Arrival)
	t.must(!behind.Room.Arrival.Before(first.Room.Arrival), "who came later came at %v, before %v", behind.Room.Arrival, first.Room.Arrival)
	t.heldByPage(a)
	return "same place"
}

func comesIn(t *try) string {
	v := t.next()
	t.revoke(t.in)
	a := t.until(v, answer.fromSite)
	t.admittedBy(a, 1)
	return a.String()
}

// until has a visitor ask until the answer is as wanted.
func (t *try) until(v *visitor, wanted func(answer) bool) (a answer) {
	came := rig.Until(t.ctx, 20*time.Second, 250*time.Millisecond, func() bool {
		t.stack.site.take(t.host)
		a = v.ask(http.MethodGet)
		return wanted(a)
	})
	t.must(came, "it stays at %v", a)
	return a
}

func isIn(t *try) string {
	a := t.in.ask(http.MethodGet)
	t.admittedBy(a, 0)
	return a.String()
}

// forgedProof is isIn in other words: every visitor here sends a proof made up.
func forgedProof(t *try) string {
	isIn(t)
	return "site, with our proof"
}

// slides goes on for three sessions.
func slides(t *try) string {
	renewed := 0
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		a := t.in.ask(http.MethodGet)
		t.must(a.fromSite(), "out after %d renewals: %v", renewed, a)
		renewed += a.passes
	}
	t.must(renewed >= 3, "%d renewed passes in three sessions", renewed)
	return "site"
}

func revoked(t *try) string {
	old, next := t.in.pass, t.next()
	t.revoke(t.in)
	t.until(next, answer.fromSite)
	t.stack.site.take(t.host)
	a := t.in.ask(http.MethodGet)
	t.must(t.in.pass != old, "the revoked pass stays")
	return t.heldByPage(a)
}

func preflight(t *try) string {
	a := t.visitor().ask(http.MethodOptions, "Origin", "https://other.example", "Access-Control-Request-Method", "PUT")
	t.admittedBy(a, 0)
	return a.String()
}

// noPreflight sends what is nearly one.
func noPreflight(t *try) string {
	for _, fields := range [][]string{{"Origin", "https://other.example"}, {"Access-Control-Request-Method", "PUT"}} {
		t.heldByPage(t.visitor().ask(http.MethodOptions, fields...))
	}
	for _, chunked := range []bool{false, true} {
		if t.fe.untold || chunked && t.fe.untoldChunks {
			continue
		}
		v := t.visitor()
		v.chunked = chunked
		a := v.send(http.MethodOptions, "item=4", "Origin", "https://other.example", "Access-Control-Request-Method", "PUT")
		if a.code != http.StatusBadRequest { // refused
			t.heldByPage(a)
		}
		t.unseen()
	}
	return t.heldByPage(t.visitor().ask(http.MethodOptions))
}

func head(t *try) string {
	a := t.visitor().ask(http.MethodHead)
	t.must(a.body == "", "a body of %d bytes", len(a.body))
	return t.heldByPage(a)
}

func posts(t *try) string {
	a := t.visitor().send(http.MethodPost, "item=4", "Content-Type", "application/x-www-form-urlencoded")
	t.must(strings.Contains(a.body, "has not been delivered"), "the page does not say that nothing was delivered")
	t.held(a, http.StatusTooManyRequests)
	return a.String()
}

func orders(t *try) string {
	content := strings.Repeat("item=4&", 10_000)
	a := t.in.send(http.MethodPost, content, "Content-Type", "application/x-www-form-urlencoded")
	got := t.stack.site.take(t.host)
	t.must(len(got) == 1 && got[0].method == http.MethodPost && got[0].body == content, "the site was asked %d times, or did not get the whole body", len(got))
	return a.String()
}

// tellsOfOthers sends what sites and their libraries believe of who asks, and for what, and asks
// for a protocol by which requests would go past the node. The site gets none of it.
func tellsOfOthers(t *try) string {
	const told = "203.0.113.77"
	var fields, dotted []string
	add := func(name string) {
		fields = append(fields, name, told)
		dotted = append(dotted, strings.ReplaceAll(name, "-", "."), told)
	}
	for _, name := range forwarding.Names() {
		switch {
		case name == "ropeline-":
		case strings.HasSuffix(name, "-") && t.fe.lists:
			for _, known := range listed() {
				if strings.HasPrefix(known, name) {
					add(known)
				}
			}
		case strings.HasSuffix(name, "-"):
			add(name + "anything")
		default:
			add(name)
		}
	}
	h2c := func(upgrade string) []string {
		return append([]string{"Connection", "Upgrade, HTTP2-Settings", "Upgrade", upgrade, "HTTP2-Settings", "AAMAAABkAAQAAP__"}, fields...)
	}
	for i, fields := range [][]string{fields, dotted, h2c("h2c"), h2c("h2c\nwebsocket"), h2c("websocket\nh2c")} {
		if i == 1 && t.fe.dots {
			continue
		}
		a := t.in.ask(http.MethodGet, fields...)
		got := t.stack.site.take(t.host)
		if i > 1 && len(got) == 0 && a.code >= 400 { // refused
			continue
		}
		t.must(len(got) == 1 && a.fromSite(), "the site was asked %d times, and the answer is %v", len(got), a)
		for name, values := range got[0].header {
			t.must(t.fe.leavesTold || !strings.Contains(strings.Join(values, " "), told), "the site is told %s: %q", name, values)
		}
		asked := strings.Join(got[0].header.Values("Upgrade"), ",")
		t.must((asked == "" || i > 2 && asked == "websocket") && got[0].header.Get("HTTP2-Settings") == "", "the site is asked for another protocol: %q", got[0].header)
	}
	return "site, as if it had not"
}

// listed are the fields, in lower case, that docs/security.md names where it speaks of those that examples list.
func listed() (names []string) {
	text := string(rig.Got(os.ReadFile("../../docs/security.md")))
	_, section, _ := strings.Cut(text, "## Fields that visitors may not set\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, found := range regexp.MustCompile("`(x-[a-z-]+[a-z])`").FindAllStringSubmatch(strings.ToLower(section), -1) {
		names = append(names, found[1])
	}
	return names
}

// choosesCountry says so in the field that nodes read of requests that they proxy.
func choosesCountry(t *try) string {
	return t.heldByPage(t.visitor().ask(http.MethodGet, countryField, "CH"))
}

func forgedPass(t *try) string {
	v, is := t.visitor(), t.in.pass
	at := len(is) / 2
	v.pass = is[:at] + string(is[at]^1) + is[at+1:]
	return t.heldByPage(v.ask(http.MethodGet))
}

// Of a rate limit of all nodes.
const (
	limitRequests = 3
	limitContent  = `{"error": "slow down"}`
	limitCode     = 420
)

// beyondLimit comes once more often than the limit says, and again: each request counts
// once, however often the proxy asks about it.
func beyondLimit(t *try) string {
	v := t.visitor()
	for i := range limitRequests {
		a := v.ask(http.MethodGet)
		t.must(a.fromSite(), "request %d of %d within the limit: %v", i+1, limitRequests, a)
	}
	t.stack.site.take(t.host)
	for range 2 {
		a := v.ask(http.MethodGet)
		kind, retry, limit, stored := a.header.Get("Content-Type"), a.header.Get("Retry-After"), a.header.Get("RateLimit"), a.header.Get("Cache-Control")
		t.must(a.code == limitCode && a.body == limitContent && strings.HasPrefix(kind, "application/json"), "the rule's answer is wanted: %v, %q of type %q", a, a.body, kind)
		t.must(retry != "" && strings.Contains(limit, `"limited";r=0;t=`), "the fields Retry-After %q and RateLimit %q", retry, limit)
		t.must(strings.Contains(stored, "no-store"), "the field Cache-Control %q", stored)
	}
	t.unseen()
	return fmt.Sprintf("rule's answer, %d", limitCode)
}

// patience is how long proxies wait for a verdict at most, as the examples say, and as
// long again for what comes on top.
const patience = 10 * time.Second

// slow stops the node's process, as a machine that swaps does, and lets it go on.
func slow(t *try) string {
	rig.Must(t.stack.node.Pause())
	t.silent()
	var a answer
	err := rig.Try(func() { a = t.in.ask("GET") })
	rig.Must(errors.Join(err, t.stack.node.Resume()))
	t.must(a.code == t.fe.slow, "code %d, want %d", a.code, t.fe.slow)
	t.must(a.took <= cmp.Or(t.fe.patience, patience), "the answer took %v", a.took)
	t.unseen()
	t.until(t.in, answer.fromSite)
	return a.String()
}

// silent waits until the node does not answer: a signal takes a moment.
func (t *try) silent() {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(t.ctx, 200*time.Millisecond)
		resp, err := t.stack.client.Do(rig.Got(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.stack.node.verdicts, nil)))
		if err == nil {
			err = resp.Body.Close()
		}
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
	}
	t.must(false, "the node answers although it was stopped")
}

// down kills the node's process. It is the last case.
func down(t *try) string {
	rig.Must(t.stack.node.Kill())
	return t.isDown(t.in)
}

func (t *try) isDown(v *visitor) string {
	a := v.ask("GET")
	t.must(a.code == t.fe.down, "code %d, want %d", a.code, t.fe.down)
	t.unseen()
	return a.String()
}

func downAndOpen(t *try) string {
	rig.Must(t.stack.node.Kill())
	if t.fe.closed {
		return t.isDown(t.visitor())
	}
	a := t.visitor().ask("GET")
	got := t.stack.site.take(t.host)
	t.must(a.fromSite() && len(got) == 1, "the site's answer is wanted: %v", a)
	t.told(got[0])
	t.must(t.fe.keepsForged || len(got[0].header.Values("Ropeline-Proof")) == 0, "the visitor's own proof has reached the site")
	return a.String()
}
