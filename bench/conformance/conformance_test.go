//go:build unix

package conformance

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// built returns the path of a node's program.
func built(t *testing.T) string {
	t.Helper()
	binary, err := rig.Built(t.Context(), rig.Ropeline)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// builtCaddy is where make artifacts/caddy puts the newest Caddy that the examples are tried with.
const builtCaddy = "../../artifacts/caddy"

// eachProxy runs a test with every proxy, all beside each other, as what takes long is waiting. Caddy has two runs
// where two are here: the one that is installed, and the one that is built.
func eachProxy(t *testing.T, o options, test func(t *testing.T, o options, fe frontEnd)) {
	t.Helper()
	o.examples, o.caddy = "../../docs/examples", "caddy"
	for _, fe := range frontEnds() {
		t.Run(fe.name, func(t *testing.T) {
			t.Parallel()
			test(t, o, fe)
		})
		if _, err := exec.LookPath(builtCaddy); err != nil || fe.example != "Caddyfile" {
			continue
		}
		newest := o
		newest.caddy = builtCaddy
		t.Run(fe.name+", built", func(t *testing.T) {
			t.Parallel()
			test(t, newest, fe)
		})
	}
}

// TestOldReleasesAreRefused: with a proxy that is older than what its example was tried with, the
// suite says so, and the page names the same versions.
func TestOldReleasesAreRefused(t *testing.T) {
	page, err := os.ReadFile("../../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, fe := range frontEnds() {
		if r := fe.oldest; r.program != "" && !strings.Contains(string(page), fe.name+" "+r.version) {
			t.Errorf("docs/verdicts.md does not say that the example is right with %s %s", fe.name, r.version)
		}
	}
	program := filepath.Join(t.TempDir(), "caddy")
	for said, refused := range map[string]bool{"2.6.2": false, "v2.11.9 h1:abc": false, "v2.6.1": true, "2.5.12": true, "no version": true} {
		if err := os.WriteFile(program, []byte("#!/bin/sh\necho '"+said+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		err := release{"caddy", "version", "2.6.2"}.check(t.Context(), options{caddy: program}, "Caddyfile")
		if refused != (err != nil) {
			t.Errorf("%q: error %v, want one: %v", said, err, refused)
		}
	}
}

var update = flag.Bool("update", false, "write what visitors saw into the table of docs/verdicts.md")

// TestProxies runs all cases with every proxy that is here, and holds the table of docs/verdicts.md to what visitors saw. What it
// says of proxies that are not here is left as it is.
func TestProxies(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real proxies for a quarter of a minute")
	}
	var mu sync.Mutex
	seen := map[string][]column{}
	t.Run("with", func(t *testing.T) {
		eachProxy(t, options{binary: built(t)}, func(t *testing.T, o options, fe frontEnd) {
			c, err := runFrontEnd(t.Context(), o, fe)
			if errors.Is(err, errNotHere) {
				t.Skip(err)
			}
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[fe.name] = append(seen[fe.name], c)
		})
	})
	if t.Failed() {
		return
	}
	page := readPage(t)
	var columns []column
	for _, fe := range frontEnds() {
		all := seen[fe.name]
		if all == nil {
			all = []column{page.column(fe)}
		}
		columns = append(columns, all[0])
		for _, other := range all[1:] {
			if !maps.Equal(other.seen, all[0].seen) {
				t.Errorf("%s: two releases differ: %v and %v", fe.name, all[0].seen, other.seen)
			}
		}
	}
	page.hold(t, table(columns))
}

// TestBesideTheTable holds what examples have to do besides asking for verdicts.
func TestBesideTheTable(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real proxies")
	}
	eachProxy(t, options{binary: built(t), open: true}, func(t *testing.T, o options, fe frontEnd) {
		c := testCase{id: "beside", places: 5}
		s := startedStack(t, o, fe, c)
		pass := ""
		c.run = func(try *try) string {
			pass = try.in.pass
			// More than nginx takes by itself, and fasthttp.
			content := strings.Repeat("item=4&", 1<<20)
			a := try.in.send(http.MethodPost, content)
			try.must(a.fromSite(), "7 MiB: %v", a)
			got := s.site.take(try.host)
			try.must(len(got) == 1 && got[0].body == content, "of 7 MiB the site gets something else, in %d requests", len(got))
			return ""
		}
		if _, err := s.do(t.Context(), fe, c); err != nil {
			t.Fatal(err)
		}
		if !fe.noUpgrades {
			if err := upgrades(t.Context(), s.proxy.addr, c.host(), pass); err != nil {
				t.Errorf("a WebSocket: %v", err)
			}
		}
		// The site fails, and not the node: that everybody is let in where no node
		// answers is no reason to ask again.
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.proxy.addr+pathGone, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host()
		req.Header.Set("Cookie", pass)
		resp, err := s.client.Do(req)
		if err == nil { // HAProxy may close, too
			resp.Body.Close()
			if resp.StatusCode < 500 {
				t.Errorf("of a site that fails: code %d", resp.StatusCode)
			}
		}
		if got := s.site.take(c.host()); len(got) != 1 {
			t.Errorf("a site that fails was asked %d times", len(got))
		}
	})
}

// TestANodeThatIsNotReadyIsPassedOver by those that can look: nobody is shown what it says
// while it has no verdict.
func TestANodeThatIsNotReadyIsPassedOver(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real proxies")
	}
	eachProxy(t, options{}, func(t *testing.T, o options, fe frontEnd) {
		if fe.example == "nginx.conf" || fe.example == "traefik.yml" {
			t.Skip("it cannot look")
		}
		s := &stack{dir: t.TempDir(), client: &http.Client{}}
		defer s.client.CloseIdleConnections()
		var err error
		if s.site, err = startSite(); err != nil {
			t.Fatal(err)
		}
		defer s.site.close()
		node := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/readyz" {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Ropeline-State", "failed")
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		node.Config.Protocols = new(http.Protocols)
		node.Config.Protocols.SetHTTP1(true)
		node.Config.Protocols.SetUnencryptedHTTP2(true)
		node.Start()
		defer node.Close()
		s.node = &ropeline{verdicts: node.Listener.Addr().String()}
		listen, err := rig.Free()
		if err != nil {
			t.Fatal(err)
		}
		if err := rig.Try(func() { s.proxy = fe.start(t.Context(), o, s.example(o, fe, listen), listen) }); errors.Is(err, errNotHere) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		defer s.proxy.stop()
		_, err = s.do(t.Context(), fe, testCase{id: "a", empty: true, run: func(try *try) string {
			try.until(try.visitor(), func(a answer) bool { return a.code == fe.down })
			return ""
		}})
		if err != nil {
			t.Errorf("visitors are to get %d: %v", fe.down, err)
		}
	})
}

// TestEnvoyDoesWhatTheExampleSays, and not what would be good for the site: without a word of
// upgrades and timeouts there are none of the first, and answers are cut.
func TestEnvoyDoesWhatTheExampleSays(t *testing.T) {
	for _, name := range []string{"envoy.yaml", "envoy-http.yaml"} {
		whole, err := os.ReadFile("../../docs/examples/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var silent []string
		for l := range strings.Lines(string(whole)) {
			if !strings.Contains(l, "upgrade_configs:") {
				silent = append(silent, strings.ReplaceAll(l, ", timeout: 0s", ""))
			}
		}
		for _, c := range []struct {
			text     string
			upgrades bool
			within   time.Duration
		}{{string(whole), true, 0}, {strings.Join(silent, ""), false, 15 * time.Second}} {
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			e, err := readEnvoy(path)
			if err != nil {
				t.Fatal(err)
			}
			f := &extAuthz{envoyExample: e}
			if f.upgrades("WebSocket") != c.upgrades || f.upgrades("h2c") || f.timeout != c.within {
				t.Errorf("%s: upgrades %v, answers within %v; want %+v", name, f.upgrades("WebSocket"), f.timeout, c)
			}
			if c.upgrades {
				continue
			}
			r := httptest.NewRequest(http.MethodGet, pathEcho, nil)
			r.Header.Set("Upgrade", "websocket")
			if v := f.check(r); v.status != http.StatusForbidden {
				t.Errorf("%s: an upgrade that is not configured gets %d", name, v.status)
			}
		}
	}
}

// TestAScriptThatFailsLetsNobodyIn: HAProxy goes on with its rules then.
func TestAScriptThatFailsLetsNobodyIn(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a real proxy")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../docs/examples")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ropeline.lua")
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const where = "local function question(txn)\n"
	broken := strings.Replace(string(script), where, where+"  error(\"broken\")\n", 1)
	if broken == string(script) {
		t.Fatalf("ropeline.lua has no %q", where)
	}
	if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(frontEnds(), func(fe frontEnd) bool { return fe.example == "haproxy.cfg" })
	c := testCase{id: "script", places: 5, empty: true}
	s := startedStack(t, options{binary: built(t), examples: dir}, frontEnds()[i], c)
	c.run = func(try *try) string { return try.isDown(try.visitor()) }
	if _, err := s.do(t.Context(), frontEnds()[i], c); err != nil {
		t.Error(err)
	}
}

// upgrades asks for a WebSocket, and says something on it.
func upgrades(ctx context.Context, addr, host, pass string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", pathEcho, host, pass)
	br := bufio.NewReader(c)
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("code %d", resp.StatusCode)
	}
	if _, err := io.WriteString(c, "hello"); err != nil {
		return err
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(br, got); err != nil || string(got) != "hello" {
		return fmt.Errorf("it says %q, %w", got, err)
	}
	return nil
}

// TestNoCellIsUnexplained holds that whatever differs from the rest of its row has a note.
func TestNoCellIsUnexplained(t *testing.T) {
	table, _, _ := strings.Cut(readPage(t).table, "\n\n")
	lines := strings.Split(table, "\n")
	if want := len(rows()) + 2; len(lines) != want {
		t.Fatalf("the table has %d lines, want %d: go test ./bench/conformance -run TestProxies -update", len(lines), want)
	}
	for i, l := range lines[2:] {
		c := rows()[i]
		cells := strings.Split(strings.Trim(l, "|"), "|")[1:]
		if len(cells) != len(frontEnds()) {
			t.Fatalf("%d cells for %d proxies in: %s", len(cells), len(frontEnds()), l)
		}
		counts := map[string]int{}
		for _, cell := range cells {
			says, _, _ := strings.Cut(strings.TrimSpace(cell), " <sup>")
			counts[says]++
		}
		for k, cell := range cells {
			says, _, noted := strings.Cut(strings.TrimSpace(cell), " <sup>")
			if says == "" || says == "broken" || counts[says]*2 < len(cells) && !noted {
				t.Errorf("%s, %s: %q is not explained", c.what, frontEnds()[k].name, cell)
			}
		}
	}
}
