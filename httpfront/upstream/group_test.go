package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logged keeps what a Group logs.
type logged struct {
	mu  sync.Mutex // guards the following
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) has(text string) bool { return strings.Contains(l.String(), text) }

// open returns a Group that is closed when the test ends.
func open(t testing.TB, cfg Config) (*Group, *logged) {
	t.Helper()
	log := &logged{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	g := must(New(cfg))
	t.Cleanup(g.Close)
	return g, log
}

// server is an origin that a test can make ill.
type server struct {
	*httptest.Server
	ill   atomic.Bool
	asked atomic.Int32
	last  atomic.Pointer[http.Request]
}

func serve(t testing.TB) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.last.Store(r)
		if s.asked.Add(1); s.ill.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// nowhere is where nobody listens: no system gives that port to anybody.
const nowhere = "http://127.0.0.1:1"

func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// acquired returns a connection for a request that has been to the origins of tried.
func acquired(g *Group, tried Tried) *Conn {
	return must(g.Acquire(&tried, Request))
}

// ask takes a connection as one request would, and says where it went.
func ask(g *Group, tried *Tried) (string, error) {
	c, err := g.Acquire(tried, Request)
	if err != nil {
		return "", err
	}
	defer c.Release()
	c.Answered(200, nil)
	return c.Origin().String(), nil
}

// running has a Group check its origins until the test ends.
func running(t *testing.T, g *Group) {
	var wg sync.WaitGroup
	wg.Go(func() { g.Run(t.Context()) })
	t.Cleanup(wg.Wait)
}

// goes expects a request to go to an origin.
func goes(t *testing.T, g *Group, tried *Tried, to string) {
	t.Helper()
	if at, err := ask(g, tried); at != to || err != nil {
		t.Fatalf("a request went to %s, %v, want %s", at, err, to)
	}
}

func TestRequestsGoToAnotherOriginAndTheDeadOneIsLeftAlone(t *testing.T) {
	alive, dead := serve(t), nowhere
	g, log := open(t, Config{Name: "shop", Origins: parsed(dead+" weight=5", alive.URL), Passive: Passive{Ejection: time.Hour, EjectionMax: time.Hour}})
	for failures := 0; failures < 3; {
		var tried Tried
		_, err := ask(g, &tried)
		if err == nil {
			continue
		}
		failures++
		d, ok := errors.AsType[*DialError](err)
		if !ok || d.Origin.String() != dead || d.Phase != "connect" || d.Timeout() || !g.Others(tried) {
			t.Fatalf("got %v, want a failure to connect to %s, and another origin: %v", err, dead, g.Others(tried))
		}
		goes(t, g, &tried, alive.URL)
		if g.Others(tried) {
			t.Fatal("there is a third origin")
		}
	}
	for range 20 {
		goes(t, g, new(Tried), alive.URL)
	}
	s := g.Status()
	if o := s.Origins[0]; s.Name != "shop" || o.State != "ejected" || o.Until == nil || o.Failures != 3 || o.Requests != 3 || o.Weight != 5 ||
		!strings.Contains(o.Reason, "refused") {
		t.Errorf("the dead one is %+v", o)
	}
	if o := s.Origins[1]; o.State != "in" || o.Reason != "" || o.Failures != 0 || o.Requests < 23 || o.Active != 0 || o.Idle != 3 { // each other try opens one
		t.Errorf("the other one is %+v", o)
	}
	if !log.has("origin is out: the others get its requests") || !log.has(dead) || !log.has("of=shop") {
		t.Errorf("the log says %s", log)
	}
}

// TestTheOnlyOriginIsOut: nobody is told that others get its requests.
func TestTheOnlyOriginIsOut(t *testing.T) {
	g, log := open(t, Config{Origins: parsed(nowhere), Passive: Passive{Ejection: time.Hour, EjectionMax: time.Hour}})
	for range 3 {
		if _, err := ask(g, new(Tried)); err == nil {
			t.Fatal("an origin that is not there answers")
		}
	}
	if !log.has("origin is out, and no other is in: requests are still tried") || log.has("the others") {
		t.Errorf("the log says %s", log)
	}
}

// TestChecksOfAnAddressWithAZone: the zone leads there, and is not told.
func TestChecksOfAnAddressWithAZone(t *testing.T) {
	lo, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here: ", err)
	}
	hosts := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hosts <- r.Host }))
	server.Listener = lo
	server.Start()
	defer server.Close()
	_, port, _ := net.SplitHostPort(lo.Addr().String())
	ifs := must(net.InterfaceByIndex(1))
	g, _ := open(t, Config{Origins: parsed("http://[::1%25" + ifs.Name + "]:" + port), Check: &Check{Path: "/up"}})
	running(t, g)
	equal(t, "the host that the check asked for", <-hosts, "[::1]:"+port)
}

func TestChecksTakeAnOriginOutAndIn(t *testing.T) {
	a, b := serve(t), serve(t)
	g, log := open(t, Config{
		Origins: parsed(a.URL, b.URL),
		Check:   &Check{Path: "/up?x=1", Host: "shop.example", Interval: 5 * time.Millisecond, Timeout: 5 * time.Millisecond, Status: []StatusRange{{200, 200}}},
	})
	// A busy machine may take longer than that for an answer.
	g.cfg.Check.Timeout = 10 * time.Second
	running(t, g)
	is := func() OriginStatus { return g.Status().Origins[0] }
	waitFor(t, "the first check", func() bool { return a.asked.Load() > 0 && b.asked.Load() > 0 })
	r := a.last.Load()
	equal(t, "the check", fmt.Sprintf("%s %s of %s, close %v", r.Method, r.URL, r.Host, r.Close), "GET /up?x=1 of shop.example, close true")
	a.ill.Store(true)
	waitFor(t, "the ill one to go out", func() bool { return is().State == "down" })
	for range 10 {
		goes(t, g, new(Tried), b.URL)
	}
	if reason := is().Reason; !strings.Contains(reason, "GET /up?x=1: status 503") {
		t.Errorf("the reason is %q", reason)
	}
	a.ill.Store(false)
	waitFor(t, "the line that the origin is in", func() bool { return log.has("origin is in again") }) // after it has come in
	if got := is(); got.State != "in" || got.Reason != "" || !log.has("origin is out") {
		t.Errorf("it is %s, the reason is still %q, and the log says %s", got.State, got.Reason, log)
	}
}

func TestRedirectsOfChecksAreNotFollowed(t *testing.T) {
	elsewhere := serve(t)
	a := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	defer a.Close()
	g, _ := open(t, Config{Origins: parsed(a.URL), Check: &Check{Path: "/"}})
	equal(t, "a redirect is a good answer", g.checkOnce(t.Context(), http.DefaultTransport, g.cfg.Origins[0]), nil)
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	equal(t, "how often it was followed", elsewhere.asked.Load(), 0)
}

func TestConnectionsAreKept(t *testing.T) {
	g, _ := open(t, Config{Origins: parsed(serve(t).URL)})
	first := acquired(g, Tried{})
	if first.Reused() {
		t.Fatal("a new connection was used before")
	}
	first.Release()
	var other Tried
	second := must(g.Acquire(&other, Request))
	if second != first || !second.Reused() || second.Received() {
		t.Fatalf("got %p, reused %v, want %p", second, second.Reused(), first)
	}
	second.Release()
	again := must(g.Acquire(&other, Request)) // the same request a second time
	if again.Reused() {
		t.Fatal("a request that is sent again got a connection that was used before")
	}
	again.Discard()
	if s := g.Status().Origins[0]; s.Active != 0 || s.Idle != 0 {
		t.Errorf("left over: %+v", s)
	}
}

// TestConnectionsEnd: one that is never idle would keep the address that its origin's name had.
func TestConnectionsEnd(t *testing.T) {
	for name, cfg := range map[string]struct {
		Config
		reused []bool
	}{
		"by their requests": {Config{Limits: Limits{Requests: 2}}, []bool{false, true, false, true}},
		"by their age":      {Config{Timeouts: Timeouts{Life: 1}}, []bool{false, false, false}},
		"not at once":       {Config{}, []bool{false, true, true}},
	} {
		cfg.Origins = parsed(serve(t).URL)
		g, _ := open(t, cfg.Config)
		for i, want := range cfg.reused {
			c := acquired(g, Tried{})
			equal(t, fmt.Sprintf("%s: connection %d was used before", name, i), c.Reused(), want)
			c.Release()
		}
		if s := g.Status().Origins[0]; s.Active != 0 || s.Idle > 1 {
			t.Errorf("%s: left over: %+v", name, s)
		}
	}
}

// TestAnotherOriginKeepsItsConnections: a request that comes from an origin where it
// failed gets a new connection to the next one, which has done nothing wrong.
func TestAnotherOriginKeepsItsConnections(t *testing.T) {
	const places = 3
	for idle := range places + 1 {
		a, b := serve(t), serve(t)
		g, _ := open(t, Config{Origins: parsed(a.URL, b.URL), Limits: Limits{Conns: places}})
		var conns []*Conn
		for range idle {
			conns = append(conns, acquired(g, Tried{set: 1})) // it has been to a, so it is b's turn
		}
		for _, c := range conns {
			c.Release()
		}
		failedAtA := Tried{set: 1}
		c := must(g.Acquire(&failedAtA, Request))
		if c.Origin().String() != b.URL || c.Reused() {
			t.Fatalf("%d idle: got one to %v, reused %v; want a new one to %s", idle, c.Origin(), c.Reused(), b.URL)
		}
		want := min(idle, places-1) // and the new one
		if s, open := g.Status().Origins[1], len(g.pools[1].open); s.Idle != want || s.Active != 1 || open != want+1 {
			t.Errorf("the origin is %+v with %d connections; want %d idle ones and another", s, open, want)
		}
		c.Release()
		if again := must(g.Acquire(&failedAtA, Request)); again.Reused() { // it failed there, too
			t.Fatalf("%d idle: got one that was used before", idle)
		}
	}
}

func TestAConnectionThatTheOriginHasClosedIsNotUsed(t *testing.T) {
	s := serve(t)
	g, _ := open(t, Config{Origins: parsed(s.URL)})
	c := acquired(g, Tried{})
	c.Release()
	waitFor(t, "the close to arrive", func() bool {
		s.CloseClientConnections() // those that it has accepted by now
		return !c.look.isQuiet()
	})
	if acquired(g, Tried{}) == c {
		t.Fatal("got the closed connection back")
	}
}

func TestPlacesAreBounded(t *testing.T) {
	g, _ := open(t, Config{Origins: parsed(serve(t).URL), Limits: Limits{Conns: 1, Tunnels: 1}, Timeouts: Timeouts{Wait: time.Millisecond}})
	var tried Tried
	c, tunnel := must(g.Acquire(&tried, Request)), must(g.AcquireTunnel(&tried))
	_, full := g.Acquire(&tried, Request)
	if _, fullOfTunnels := g.AcquireTunnel(&tried); full != ErrBusy || fullOfTunnels != ErrTunnels {
		t.Errorf("got %v and %v, want %v and %v", full, fullOfTunnels, ErrBusy, ErrTunnels)
	}
	if s := g.Status().Origins[0]; s.Active != 1 || s.Tunnels != 1 {
		t.Errorf("status is %+v", s)
	}
	tunnel.Release()
	c.Discard()
	must(g.AcquireTunnel(&tried)).Discard()
	g.Close()
	_, err := g.Acquire(&tried, Request)
	if _, forTunnel := g.AcquireTunnel(&tried); err != ErrClosed || forTunnel != ErrClosed {
		t.Errorf("after the end: got %v and %v, want %v", err, forTunnel, ErrClosed)
	}
	if s := g.Status().Origins[0]; s.Active != 0 || s.Tunnels != 0 || s.State != "in" {
		t.Errorf("left over: %+v", s)
	}
}

// TestFullOriginsAreGoneAround sends a request to the origin that has room.
func TestFullOriginsAreGoneAround(t *testing.T) {
	a, b := serve(t), serve(t)
	g, _ := open(t, Config{Origins: parsed(a.URL+" weight=1000", b.URL), Limits: Limits{Conns: 1}, Timeouts: Timeouts{Wait: time.Hour}})
	seen := map[string]bool{}
	for range 2 {
		c := acquired(g, Tried{})
		defer c.Discard()
		seen[c.Origin().String()] = true
	}
	equal(t, "where two requests went", len(seen), 2)
}

// nameServer answers each question for an address with the next one of answers,
// and then with the last.
func nameServer(t *testing.T, answers ...[4]byte) *net.Resolver {
	t.Helper()
	pc := must(net.ListenPacket("udp", "127.0.0.1:0"))
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: answers[0]},
				}}
				if len(answers) > 1 {
					answers = answers[1:]
				}
			}
			pc.WriteTo(must(m.Pack()), from)
		}
	})
	t.Cleanup(func() { pc.Close(); wg.Wait() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

// TestANameThatComesToMeanSomethingElse resolves to the origin at first and then
// to where clouds keep credentials.
func TestANameThatComesToMeanSomethingElse(t *testing.T) {
	_, port, _ := net.SplitHostPort(serve(t).Listener.Addr().String())
	g, _ := open(t, Config{Origins: parsed("http://shop.example:" + port)})
	g.resolver = nameServer(t, [4]byte{127, 0, 0, 1}, [4]byte{169, 254, 169, 254})
	var tried Tried
	c := must(g.Acquire(&tried, Request))
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if line, err := c.Reader().ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" || !c.Received() {
		t.Errorf("got %q, %v", line, err)
	}
	c.Discard()
	_, err := g.Acquire(&tried, Request)
	if e, ok := errors.AsType[*AddressError](err); !ok || e.Addr.String() != "169.254.169.254" {
		t.Errorf("got %v, want the address to be refused", err)
	}
}

func TestPhasesOfDialling(t *testing.T) {
	silent := must(net.Listen("tcp", "127.0.0.1:0")) // accepts, and never says anything
	defer silent.Close()
	g, _ := open(t, Config{Origins: parsed("https://" + silent.Addr().String()), Timeouts: Timeouts{Handshake: 20 * time.Millisecond}})
	_, err := g.Acquire(new(Tried), Request)
	if e, ok := errors.AsType[*DialError](err); !ok || e.Phase != "TLS handshake" || !e.Timeout() {
		t.Errorf("got %v, want a handshake that takes too long", err)
	}
}

func TestJitter(t *testing.T) {
	for chance, want := range map[float64]time.Duration{0: 900, 0.5: 1000, 1: 1100} {
		equal(t, fmt.Sprint("chance ", chance), jittered(1000, chance), want)
	}
}

// TestAKeptConnectionIsItsClients: nobody else gets it, it holds no place while it waits, and
// there are no more of them than of places.
func TestAKeptConnectionIsItsClients(t *testing.T) {
	g, _ := open(t, Config{Origins: parsed(serve(t).URL), Limits: Limits{Conns: 1}, Timeouts: Timeouts{Wait: time.Millisecond}})
	acquire := func() *Conn { return acquired(g, Tried{}) }
	own := acquire()
	if own.Kept() || !own.Keep() || !own.Kept() || !g.Has(own) {
		t.Fatal("a connection cannot be kept")
	}
	other := acquire()
	if other == own {
		t.Error("somebody else gets a connection that is kept")
	}
	var again Tried
	equal(t, "beyond the places", g.Resume(own, &again, Request, true), ErrBusy)
	other.Release()
	own = acquire()
	own.Keep()
	if err := g.Resume(own, &again, Request, true); err != nil || g.Others(again) {
		t.Fatalf("resumed: %v, tried %v", err, again)
	}
	own.Keep()
	more := acquire()
	if more.Keep() {
		t.Error("more are kept than there are places")
	}
	own.Drop()
	last := acquire()
	if !last.Keep() {
		t.Error("one that was dropped still counts")
	}
	last.Conn.Close()
	equal(t, "one that is closed", g.Resume(last, &again, Request, true), ErrStale)
	acquire().Discard() // no place was lost on the way
}

// must is for what a test sets up, and cannot do without.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// equal fails the test unless got is want.
func equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}
