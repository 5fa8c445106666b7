package httpfront

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// sideBySide is how many tests run at once that call t.Parallel, unless -parallel says otherwise.
// They wait for deadlines most of their time, so one core has time for all of them.
const sideBySide = 16

func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		flag.Set("test.parallel", strconv.Itoa(sideBySide))
	}
	goleak.VerifyTestMain(m)
}

func testLogger(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// lockedLog keeps what is logged.
type lockedLog struct {
	mu  sync.Mutex // guards the following
	buf bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lockedLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *lockedLog) has(text string) bool { return strings.Contains(l.text(), text) }

func (l *lockedLog) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// run runs f until the test ends, and waits for it.
func run(tb testing.TB, f func(context.Context) error) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				tb.Errorf("run: %v", err)
			}
		case <-time.After(20 * time.Second):
			tb.Error("run does not return")
		}
	})
	tb.Cleanup(stop)
	return stop
}

// await returns what comes next.
func await[T any](tb testing.TB, what string, from <-chan T) (next T) {
	tb.Helper()
	select {
	case next = <-from:
	case <-time.After(10 * time.Second):
		tb.Fatalf("waited in vain for %s", what)
	}
	return next
}

// waitFor waits until ok, looking again and again.
func waitFor(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("waited in vain for %s", what)
		}
	}
}

// fakeRoom is a room that does what a test says.
type fakeRoom struct {
	settings room.Settings
	decide   func(p node.Pass, known bool, now time.Time) node.Verdict
	bypassed atomic.Int64
	queued   atomic.Int64
	crowded  atomic.Int64
	dryRun   atomic.Int64
	shared   atomic.Int64

	mu    sync.Mutex  // guards the following
	ended []node.Pass // whose sessions the origin has ended
	endAt time.Time   // when it ended the last
	last  seen        // whom it decided about last
}

// seen is what a room is asked to decide about.
type seen struct {
	p     node.Pass
	known bool
}

func (r *fakeRoom) Settings() *room.Settings { return &r.settings }

func (r *fakeRoom) Decide(p node.Pass, known bool, now time.Time) node.Verdict {
	r.mu.Lock()
	r.last = seen{p, known}
	r.mu.Unlock()
	return r.decide(p, known, now)
}

// saw returns whom it decided about last.
func (r *fakeRoom) saw() seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Standing says that who has waited still does.
func (r *fakeRoom) Standing(node.Pass, bool, time.Time) node.Standing { return node.Waits }

func (r *fakeRoom) Hold(p node.Pass, counted bool, now time.Time) node.Verdict {
	isNew := p.Arrival.IsZero()
	if isNew {
		p = node.Pass{Visitor: node.VisitorID{0xed}, Arrival: now}
	}
	p.LastPoll, p.Refresh = now, 20*time.Second
	return node.Verdict{New: isNew && counted, SetPass: true, Pass: p, Refresh: p.Refresh}
}

func (r *fakeRoom) CountBypass() { r.bypassed.Add(1) }

func (r *fakeRoom) CountCrowded() { r.crowded.Add(1) }

func (r *fakeRoom) CountDryRun() { r.dryRun.Add(1) }

func (r *fakeRoom) CountShared() { r.shared.Add(1) }

func (r *fakeRoom) Queue(node.Pass) { r.queued.Add(1) }

func (r *fakeRoom) End(p node.Pass, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !p.Accepted() {
		return false
	}
	r.ended, r.endAt = append(r.ended, p), now
	return true
}

// takeEnded returns whose sessions were ended since it was called last.
func (r *fakeRoom) takeEnded() []node.Pass {
	r.mu.Lock()
	defer r.mu.Unlock()
	ended := r.ended
	r.ended = nil
	return ended
}

// whoEnded is takeEnded with the first byte of each visitor only.
func (r *fakeRoom) whoEnded() string {
	var who []byte
	for _, p := range r.takeEnded() {
		who = append(who, p.Visitor[0])
	}
	return fmt.Sprint(who)
}

// fakeRooms has one room below a path.
type fakeRooms struct {
	path string
	room Room
}

func (r fakeRooms) Route(_, path string) Room {
	if r.room != nil && strings.HasPrefix(path, r.path) {
		return r.room
	}
	return nil
}

func newRoom(decide func(p node.Pass, known bool, now time.Time) node.Verdict) *fakeRoom {
	return &fakeRoom{
		settings: room.Settings{
			ID: crdt.RoomID{1}, Name: "shop", QueueingMethod: room.FIFO,
			SessionDuration: 5 * time.Minute, PlaceKept: 5 * time.Minute, RefreshInterval: 20 * time.Second,
		},
		decide: decide,
	}
}

// always admits everybody and gives no pass.
func always(node.Pass, bool, time.Time) node.Verdict { return node.Verdict{Admit: true} }

// never makes everybody wait at place 1,235.
func never(p node.Pass, known bool, now time.Time) node.Verdict {
	if !known {
		p = node.Pass{Visitor: node.VisitorID{7}, Arrival: now}
	}
	p.LastPoll, p.Refresh = now, 20*time.Second
	return node.Verdict{
		Pass: p, SetPass: true, Refresh: 20 * time.Second,
		Estimate: room.Estimate{Known: true, Minutes: 61, Position: 1235, Ahead: 1234},
	}
}

// letIn admits everybody and gives a new pass.
func letIn(p node.Pass, known bool, now time.Time) node.Verdict {
	v := never(p, known, now)
	v.Admit = true
	return v
}

func newKeys() *pass.Keyring {
	return must(pass.NewKeyring(pass.Key{ID: 1, Secret: [32]byte{1, 2, 3}}))
}

// front is a running Front with an origin behind it.
type front struct {
	tb     testing.TB
	addr   string
	keys   *pass.Keyring
	client *http.Client
	stop   func()
	front  *Front
}

// serve starts a front before the origin, which is not asked what the front asks by itself. It is stopped when the test ends.
func serve(tb testing.TB, rooms Rooms, origin http.Handler, change ...func(*Config)) *front {
	tb.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.UserAgent() != "ropeline-health-check" {
			origin.ServeHTTP(w, r)
		}
	}))
	srv.Config.ErrorLog = slog.NewLogLogger(testLogger(tb).Handler(), slog.LevelDebug)
	srv.Start()
	tb.Cleanup(srv.Close)
	return serveTo(tb, rooms, srv.URL, change...)
}

// origins is one or more servers of a site.
func origins(texts ...string) (all Origins) {
	for _, s := range texts {
		all.Servers = append(all.Servers, must(upstream.ParseOrigin(s)))
	}
	return all
}

// nowhere is an origin that is not there: nobody listens at that port.
const nowhere = "http://127.0.0.1:1"

// loopbackListener returns a listener on loopback that is closed when the test ends.
func loopbackListener(tb testing.TB) net.Listener {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	tb.Cleanup(func() { ln.Close() })
	return ln
}

func serveTo(tb testing.TB, rooms Rooms, origin string, change ...func(*Config)) *front {
	tb.Helper()
	ln := loopbackListener(tb)
	keys := newKeys()
	if rooms == nil {
		rooms = fakeRooms{}
	}
	cfg := Config{Connections: Connections{Listener: ln}, Rooms: rooms, Keys: keys, Logger: testLogger(tb)}
	if origin != "" { // else change says where
		cfg.Origins = origins(origin)
	}
	cfg.Timeouts.Drain = 2 * time.Second
	for _, c := range change {
		c(&cfg)
	}
	f := must(New(cfg))
	return &front{tb: tb, addr: ln.Addr().String(), keys: keys, front: f, stop: run(tb, f.Run), client: newClient(tb)}
}

// newClient returns one that follows no redirects.
func newClient(tb testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 1000}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// configure has a front go by the settings of a room.
func configure(tb testing.TB, f *Front, s room.Settings) {
	tb.Helper()
	noError(tb, f.Configure(s))
}

// unused waits until nothing of any request is left.
func (f *front) unused() {
	f.tb.Helper()
	waitFor(f.tb, "all requests to end", func() bool {
		_, n := f.front.Load()
		return n == 0 && f.active() == 0
	})
}

// active is how many requests are with the origins.
func (f *front) active() (n int) {
	for _, g := range f.front.Origins() {
		for _, o := range g.Origins {
			n += o.Active
		}
	}
	return n
}

func (f *front) url(path string) string { return "http://" + f.addr + path }

// reply is a response that was read whole.
type reply struct {
	*http.Response
	body string
}

// whole reads the rest of a response.
func whole(tb testing.TB, resp *http.Response) reply {
	tb.Helper()
	defer resp.Body.Close()
	return reply{resp, rest(tb, resp.Body)}
}

// send sends a request with header fields given as name, value, name, value, ….
func send(tb testing.TB, client *http.Client, method, url string, body io.Reader, header ...string) reply {
	tb.Helper()
	req := must(http.NewRequest(method, url, body))
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	noError(tb, err)
	return whole(tb, resp)
}

// do sends a request with header fields given as name, value, name, value, ….
func (f *front) do(method, path string, body io.Reader, header ...string) reply {
	f.tb.Helper()
	return send(f.tb, f.client, method, f.url(path), body, header...)
}

func (f *front) get(path string, header ...string) reply {
	f.tb.Helper()
	return f.do("GET", path, nil, header...)
}

// open asks for path, and returns the answer when its head is there. The test's end closes it.
func (f *front) open(path string) *http.Response {
	f.tb.Helper()
	resp, err := f.client.Get(f.url(path))
	noError(f.tb, err)
	f.tb.Cleanup(func() { resp.Body.Close() })
	return resp
}

// seal returns the cookie of a pass.
func (f *front) seal(p node.Pass, host string) string {
	return "ropeline=" + string(f.keys.AppendSeal(nil, p, host))
}

// conn is a client's connection to a front.
type conn struct {
	*net.TCPConn
	tb testing.TB
	br *bufio.Reader // what has come
}

// dial opens a connection that the test's end closes.
func (f *front) dial() *conn {
	f.tb.Helper()
	c := must(net.Dial("tcp", f.addr))
	f.tb.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return &conn{c.(*net.TCPConn), f.tb, bufio.NewReader(c)}
}

// response reads one response to a request of that method.
func (c *conn) response(method string) *http.Response {
	c.tb.Helper()
	return readResponse(c.tb, c.br, method)
}

// read reads the whole response to a request of that method.
func (c *conn) read(method string) reply {
	c.tb.Helper()
	return whole(c.tb, c.response(method))
}

// ask sends a request of that method and reads the whole answer to it.
func (c *conn) ask(method, request string) reply {
	c.tb.Helper()
	_, err := io.WriteString(c, request)
	noError(c.tb, err)
	resp := c.response(method)
	if resp.StatusCode == http.StatusContinue {
		resp = c.response(method)
	}
	return whole(c.tb, resp)
}

// raw sends bytes on a connection of their own and returns all that comes back
// until the front closes.
func (f *front) raw(request string) string {
	f.tb.Helper()
	c := f.dial()
	defer c.Close()
	_, err := io.WriteString(c, request)
	noError(f.tb, err)
	return rest(f.tb, c)
}

// readResponse reads one response to a request of that method.
func readResponse(tb testing.TB, br *bufio.Reader, method string) *http.Response {
	tb.Helper()
	resp, err := http.ReadResponse(br, &http.Request{Method: method})
	noError(tb, err)
	return resp
}

// echo is an origin that says what it was asked.
func echo(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s host=%s\n", r.Method, r.RequestURI, r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			fmt.Fprintf(w, "%s: %s\n", name, v)
		}
	}
}

// discard is an origin that takes what comes.
func discard(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }

// answerAll answers every read of a request without a body.
func answerAll(c net.Conn) {
	defer c.Close()
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello")
	buf := make([]byte, 4096)
	for {
		if _, err := c.Read(buf); err != nil {
			return
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}
