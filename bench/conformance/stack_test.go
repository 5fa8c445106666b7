//go:build unix

package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// stack is a site, a node and one proxy between them.
type stack struct {
	dir    string
	site   *site
	node   *ropeline
	proxy  *proxy
	client *http.Client
}

// proxy is a running front end.
type proxy struct {
	addr string // where visitors connect
	stop func()
}

// frontEnd is a kind of proxy, and how one is started with the configuration that the
// documentation shows.
type frontEnd struct {
	name    string
	example string // file in docs/examples
	// start runs it with the example as it is to be. It fails, as rig.Must does, with an
	// error that wraps errNotHere where the proxy cannot be had.
	start  func(ctx context.Context, o options, example, addr string) *proxy
	oldest release // that the example is right with; zero: what runs is built here
	// standIn says that it is not the proxy itself that runs, but what its
	// documentation says it does.
	standIn bool
	// down is what visitors see when no node answers, and slow when one does not
	// answer in time, as far as the example decides it.
	down, slow int
	// patience is how long it waits for a node, where that cannot be set; 0: as the
	// example says.
	patience time.Duration
	// pages says that it fetches the page by a request of its own, and so does not
	// read anything into its code.
	pages bool
	// siteCaches says that it leaves the site's Cache-Control where a pass is set.
	siteCaches bool
	// keepsForged says that it leaves a proof that a visitor has made up where no node
	// answers.
	keepsForged bool
	// untold says that it does not tell a node of bodies.
	untold bool
	// untoldChunks says that it does not tell a node of bodies without a length.
	untoldChunks bool
	// lists says that its example names each field that visitors may not set, and none by how it begins.
	lists bool
	// dots says that it leaves such fields whose names have dots for dashes.
	dots bool
	// pools says that who has logged in for a connection without being asked to may be met by others on it.
	pools bool
	// leavesTold says that its example leaves it to other settings what visitors may tell a
	// site of where they come from.
	leavesTold bool
	// noUpgrades says that it knows no WebSockets.
	noUpgrades bool
	// closed says that there is no way to let everybody in where no node answers.
	closed bool
}

// askingClient is for questions to the node: each answer is the verdict, redirects too.
func askingClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 16},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// errNotHere is wrapped by the errors of proxies that are not installed.
var errNotHere = errors.New("not to be had here")

// startStack starts everything for one proxy.
func startStack(ctx context.Context, o options, fe frontEnd, cases []testCase) (*stack, error) {
	s := &stack{client: askingClient(0)}
	err := rig.Try(func() {
		s.dir = rig.Got(os.MkdirTemp("", "ropeline-conformance-"))
		s.site = rig.Got(startSite())
		s.startNode(ctx, o.binary, cases)
		listen := rig.Got(rig.Free())
		rig.Must(fe.oldest.check(ctx, o, fe.example))
		s.proxy = fe.start(ctx, o, s.example(o, fe, listen), listen)
	})
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// example writes the example into the folder of this stack, with its addresses.
func (s *stack) example(o options, fe frontEnd, listen string) (path string) {
	e := rig.Example{Folder: o.examples, Name: fe.example, Listen: listen, Site: s.site.addr, Verdicts: s.node.verdicts, Open: o.open}
	return rig.Got(e.Write(s.dir))
}

// startedStack is startStack of one case, until the test ends. Without the proxy the test is skipped.
func startedStack(t *testing.T, o options, fe frontEnd, c testCase) *stack {
	t.Helper()
	s, err := startStack(t.Context(), o, fe, []testCase{c})
	if errors.Is(err, errNotHere) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// close stops what was started.
func (s *stack) close() {
	s.client.CloseIdleConnections()
	if s.proxy != nil {
		s.proxy.stop()
	}
	if s.node != nil {
		_ = s.node.Stop() // it has nothing to lose
	}
	if s.site != nil {
		s.site.close()
	}
	os.RemoveAll(s.dir) // is the system's temporary directory's to clear, else
}

// revoke ends the session of a visitor, as the site does.
func (t *try) revoke(v *visitor) {
	ctx, cancel := context.WithTimeout(t.ctx, 10*time.Second)
	defer cancel()
	req := rig.Got(http.NewRequestWithContext(ctx, http.MethodPost, "http://"+t.stack.node.verdicts+"/revoke", nil))
	req.Header.Set("X-Forwarded-Host", t.host)
	req.Header.Set("X-Forwarded-Proto", "http")
	req.Header.Set("Cookie", v.pass)
	resp := rig.Got(t.stack.client.Do(req))
	defer resp.Body.Close()
	t.must(resp.StatusCode == http.StatusNoContent, "revoke: code %d", resp.StatusCode)
}

// ropeline is a node that only gives verdicts.
type ropeline struct {
	*rig.Process
	verdicts string // where it is asked
}

// startNode starts a node with a room for each case, all by themselves: each has its own
// host.
func (s *stack) startNode(ctx context.Context, binary string, cases []testCase) {
	verdicts, admin := rig.Got(rig.Free()), rig.Got(rig.Free())
	var b strings.Builder
	fmt.Fprintf(&b, "verdict-listen: %s\nadmin: %s\ntrusted-proxies: [127.0.0.1]\ndata-dir: %q\n", verdicts, admin, filepath.Join(s.dir, "node"))
	fmt.Fprintf(&b, "proof: true\nenabled-origin-commands: [revoke]\nqueueing-status-code: %d\nnew-users-per-minute: 1000\nrefresh-interval: 1s\ncountry-header: %s\n", roomCode, countryField)
	fmt.Fprintf(&b, "rate-limits:\n  - {name: limited, expression: 'http.host eq \"limited.example\"', characteristics: [ip.src], period: 1h, requests-per-period: %d, status-code: %d, content: '%s', content-type: application/json}\n", limitRequests, limitCode, limitContent)
	b.WriteString("rooms:\n")
	for _, c := range cases {
		fmt.Fprintf(&b, "  - room: %s\n    host: %s\n    total-active-users: %d\n    session-duration: %s\n", c.id, c.host(), c.places, c.session())
		if c.rule != "" {
			fmt.Fprintf(&b, "    rules: [{expression: %q}]\n", c.rule)
		}
	}
	config := filepath.Join(s.dir, "ropeline.yaml")
	rig.Must(os.WriteFile(config, []byte(b.String()), 0o600))
	s.node = &ropeline{rig.Got(rig.Start(ctx, rig.Command{Name: binary, Args: []string{"run", "--config", config}})), verdicts}
	rig.Must(s.node.Await(ctx, "http://"+verdicts+"/readyz"))
}

// roomCode is the status code that all rooms have for their pages: one that most
// proxies would take for a yes.
const roomCode = http.StatusAccepted

// countryField is where the node reads the country of visitors whom it proxies.
const countryField = "CF-IPCountry"
