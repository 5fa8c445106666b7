package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/history"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/transport"
)

// await polls for long: machines are slow at times.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func listen() net.Listener { return must.Do(net.Listen("tcp", "127.0.0.1:0")) }

// says is a site that has one word.
type says string

func (s says) ServeHTTP(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, string(s)) }

// to is the way to origins.
func to(origins httpfront.Origins, routes ...httpfront.Route) Proxy {
	return Proxy{Upstreams: httpfront.Upstreams{Origins: origins, Routes: routes}}
}

// example is a node in front of a site, with one room for so many.
func example(t *testing.T, site http.Handler, most int) Config {
	srv := httptest.NewServer(site)
	t.Cleanup(srv.Close)
	return Config{
		DataDir: t.TempDir(), Proxy: to(httpfront.Origins{Servers: []upstream.Origin{must.Do(upstream.ParseOrigin(srv.URL))}}),
		Rooms:  []room.Settings{{Name: "shop", TotalActiveUsers: most, NewUsersPerMinute: most}},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

// start makes a node and runs it until the test ends, or until it is stopped.
func start(t *testing.T, cfg Config) (s *Server, stop func()) {
	t.Helper()
	s = must.Do(New(cfg))
	return s, must.Run(t, s.Run)
}

// awaitReady waits until nodes take visitors.
func awaitReady(t *testing.T, nodes ...*Server) {
	t.Helper()
	for _, s := range nodes {
		select {
		case <-s.Ready():
		case <-s.Stopping():
			t.Fatal("a node stops before it is ready")
		case <-time.After(30 * time.Second):
			t.Fatalf("a node is not ready: %+v", s.Status())
		}
	}
}

// visit asks for a page and returns what there is, and whether that is the site's.
func visit(t *testing.T, address string) (text string, waits bool) {
	t.Helper()
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp := must.Do(client.Get("http://" + address))
	defer resp.Body.Close()
	return string(must.Do(io.ReadAll(resp.Body))), resp.Header.Get("Ropeline-State") == "waiting"
}

// TestTwoServersInOneProcess: each has a site, a limit, counts and a log of its own, and one that
// ends takes nothing from the other.
func TestTwoServersInOneProcess(t *testing.T) {
	t.Parallel()
	var logs [2]strings.Builder
	var nodes [2]*Server
	var stops [2]func()
	for i, word := range []string{"bread", "books"} {
		cfg := example(t, says(word), i+1)
		cfg.Name, cfg.Logger = word, slog.New(slog.NewTextHandler(&logs[i], nil))
		nodes[i], stops[i] = start(t, cfg)
	}
	awaitReady(t, nodes[:]...)
	for i, word := range []string{"bread", "books"} {
		at := nodes[i].Addresses().Visitors
		for n := range 4 {
			text, waits := visit(t, at)
			if inside := n <= i; waits == inside || inside != (text == word) {
				t.Errorf("visitor %d of %s: waits %v, gets %.40q", n, word, waits, text)
			}
		}
		want := `ropeline_requests_total{outcome="queued",room="shop",zone="default"} ` + map[string]string{"bread": "3", "books": "2"}[word]
		// A request is counted once its answer is sent, which the visitor may have by then.
		await(t, "the metrics of "+word+" to say "+want, func() bool {
			page, _ := visit(t, nodes[i].Addresses().Admin+"/metrics")
			return strings.Contains(page, want+"\n")
		})
	}
	stops[0]()
	select {
	case <-nodes[0].Stopping():
	default:
		t.Error("a node that has stopped does not say so")
	}
	if _, err := net.Dial("tcp", nodes[0].Addresses().Visitors); err == nil {
		t.Error("a node that has stopped still listens")
	}
	if text, waits := visit(t, nodes[1].Addresses().Visitors); !waits {
		t.Errorf("once the other has stopped, a visitor of the full room gets %.40q", text)
	}
	stops[1]()
	for i, other := range []string{nodes[1].Status().Node, nodes[0].Status().Node} {
		if strings.Contains(logs[i].String(), other) || !strings.Contains(logs[i].String(), "msg=stopped") {
			t.Errorf("the log of one node has to tell of its end, and nothing of the other:\n%s", logs[i].String())
		}
	}
}

// TestAMeshInOneProcess: two nodes with one limit.
func TestAMeshInOneProcess(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret.key")
	must.OK(WriteSecret(secret, transport.NewSecret().Text()+"\n"))
	var nodes []*Server
	for _, name := range []string{"a1", "b1"} {
		cfg := example(t, says("the site"), 4)
		cfg.Name, cfg.Site = name, name[:1]
		cfg.Mesh = Mesh{Listen: "127.0.0.1:0", SecretFile: secret}
		cfg.Rights = Rights{Bootstrap: []string{"a1", "b1"}}
		if len(nodes) > 0 {
			cfg.Mesh.Join = []string{nodes[0].Addresses().Mesh}
		}
		s, _ := start(t, cfg)
		nodes = append(nodes, s)
	}
	awaitReady(t, nodes...)
	inside := 0
	for range 8 {
		for _, s := range nodes {
			if _, waits := visit(t, s.Addresses().Visitors); !waits {
				inside++
			}
		}
	}
	if inside == 0 || inside > 4 {
		t.Errorf("%d visitors were let in; the limit of the mesh is 4", inside)
	}
}

// TestAServerThatCannotBeMade says what to do, and holds nothing.
func TestAServerThatCannotBeMade(t *testing.T) {
	t.Parallel()
	taken := listen()
	defer taken.Close()
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
		is     string // the setting that is wrong; "": none is by itself
	}{
		"no directory":   {func(c *Config) { c.DataDir = "" }, "--data-dir is missing", "data-dir"},
		"no room":        {func(c *Config) { c.Rooms = nil }, "no room is given", "rooms"},
		"a room":         {func(c *Config) { c.Rooms[0].TotalActiveUsers = -1 }, `room "shop"`, "rooms"},
		"no site":        {func(c *Config) { c.Proxy.Origins.Servers = nil }, "--origin is missing", "origin"},
		"open to all":    {func(c *Config) { c.Admin.Listen = ":0" }, "needs tokens", "admin"},
		"join nobody":    {func(c *Config) { c.Mesh.Join = []string{"a:1"} }, "--join needs --mesh", "join"},
		"port for pages": {func(c *Config) { c.Clients.Listen = taken.Addr().String() }, "choose another address with --listen", ""},
		"port for verdict": {func(c *Config) {
			c.Clients.VerdictListen, c.Clients.TrustedProxies = taken.Addr().String(), []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
		}, "with --verdict-listen", ""},
		"port for admin": {func(c *Config) { c.Admin.Listen = taken.Addr().String() }, "with --admin", ""},
		"certificate":    {func(c *Config) { c.TLS.CertFiles, c.TLS.KeyFiles = []string{"none.crt"}, []string{"none.key"} }, "--tls-cert-file: ", ""},
		"access log":     {func(c *Config) { c.Signals.AccessLog = filepath.Join(c.DataDir, "none", "log") }, "access log: ", ""},
		"secret":         {func(c *Config) { c.Mesh.SecretFile = filepath.Join(c.DataDir, "none") }, "read the secret", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := example(t, says("the site"), 1)
			good := cfg
			good.Rooms = append([]room.Settings(nil), cfg.Rooms...)
			c.change(&cfg)
			_, err := New(cfg)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want one about %q", err, c.says)
			}
			if e, ok := errors.AsType[*SettingError](err); ok != (c.is != "") || ok && e.Setting != c.is {
				t.Errorf("%v is about the setting %+v, want %q", err, e, c.is)
			}
			must.OK(must.Do(New(good)).Close()) // in the same directory, once it is right
		})
	}
}

// TestAServerThatNeverRan holds nothing once it is closed, and does not run.
func TestAServerThatNeverRan(t *testing.T) {
	t.Parallel()
	cfg := example(t, says("the site"), 1)
	for range 2 {
		s := must.Do(New(cfg))
		cfg.Clients.Listen, cfg.Admin.Listen = s.Addresses().Visitors, s.Addresses().Admin // the next takes them over
		if _, err := New(cfg); !errors.Is(err, node.ErrInUse) {
			t.Errorf("two servers have one directory: %v", err)
		}
		for range 2 {
			must.OK(s.Close())
		}
		if err := s.Run(t.Context()); err == nil {
			t.Error("it runs after it was closed")
		}
	}
	s, _ := start(t, cfg)
	awaitReady(t, s)
	if err := s.Run(t.Context()); err == nil {
		t.Error("it runs twice")
	}
	must.OK(s.Close())
	if text, _ := visit(t, cfg.Clients.Listen); text != "the site" {
		t.Errorf("a visitor gets %.40q", text)
	}
}

// TestASeamStandsBetween: the rooms that the front asks are the test's.
func TestASeamStandsBetween(t *testing.T) {
	t.Parallel()
	cfg := example(t, says("the site"), 1)
	var routed atomic.Bool
	cfg.Seams.Rooms = func(of httpfront.Rooms, now func() time.Time) httpfront.Rooms {
		if d := time.Until(now()).Abs(); d < 50*time.Minute || d > 70*time.Minute {
			t.Errorf("the clock of the node is %v off, want an hour", d)
		}
		return watched{of, &routed}
	}
	cfg.Seams.Clock = func() time.Time { return time.Now().Add(time.Hour) }
	s, _ := start(t, cfg)
	awaitReady(t, s)
	visit(t, s.Addresses().Visitors)
	if !routed.Load() {
		t.Error("the front has not asked through it")
	}
}

type watched struct {
	httpfront.Rooms
	routed *atomic.Bool
}

func (w watched) Route(host, path string) httpfront.Room {
	w.routed.Store(true)
	return w.Rooms.Route(host, path)
}

// TestManyHostsAreNotAllTold: how many there are is in the log, and of which some are.
func TestManyHostsAreNotAllTold(t *testing.T) {
	rooms := make([]room.Settings, 1000)
	for i := range rooms {
		rooms[i].Host = fmt.Sprintf("shop-%03d.example", i/2)
	}
	var out strings.Builder
	new(Front).warnOfHosts(rooms, slog.New(slog.NewTextHandler(&out, nil)))
	if got := out.String(); !strings.Contains(got, "hosts=500 ") || strings.Count(got, ".example") != hostsTold || !strings.Contains(got, "shop-000.example") {
		t.Errorf("got %s", got)
	}
}

func TestRoomIDIsTheSameOnEveryNode(t *testing.T) {
	// What a node computed yesterday, on another machine.
	if got, want := RoomID("default").String(), "b3210f84475868c4c9b0ccda9a01b1a5"; got != want {
		t.Errorf("id of the room default = %s, want %s", got, want)
	}
	if RoomID("a") == RoomID("b") {
		t.Error("two rooms have one id")
	}
}

// TestAnswersAboutThePast refuses questions that make no sense.
func TestAnswersAboutThePast(t *testing.T) {
	far := history.Question{From: time.Unix(-1, 0)}.AppendBinary(nil)
	for _, question := range [][]byte{nil, far[1:], append(make([]byte, 1), far...), far} {
		if _, err := new(managed).answerHistory(t.Context(), transport.Peer{}, question); err == nil {
			t.Errorf("%x is answered", question)
		}
	}
}

// TestOutcomesAreTheirs: each outcome of a request has a word, by which the metrics count it and their page explains it.
func TestOutcomesAreTheirs(t *testing.T) {
	page := string(must.Do(os.ReadFile("../../docs/metrics.md")))
	all := httpfront.Outcomes()
	for o, word := range all {
		if is := httpfront.Outcome(o).String(); is != word || !strings.Contains(page, "`"+word+"`") {
			t.Errorf("%s is called %s, or not explained", word, is)
		}
	}
	if next := httpfront.Outcome(len(all)).String(); next != "unknown" {
		t.Errorf("%s is not counted", next)
	}
}
