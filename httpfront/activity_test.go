package httpfront

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// onTheSite is a room whose visitors are let in, and that says what a test says when
// they are judged again, by a clock that the test sets.
type onTheSite struct {
	*fakeRoom
	now   atomic.Int64 // ns since 1970
	asked chan node.Pass
	says  chan node.Verdict // nil: what extended says
}

const visitorSeven = 7

func newOnTheSite(tb testing.TB) *onTheSite {
	o := &onTheSite{asked: make(chan node.Pass, 100)}
	o.now.Store(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC).UnixNano())
	o.fakeRoom = newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		if !known {
			return extended(p, now)
		}
		o.asked <- p
		if o.says == nil {
			return extended(p, now)
		}
		select {
		case v := <-o.says:
			return v
		case <-tb.Context().Done():
			return extended(p, now)
		}
	})
	return o
}

// extended lets the visitor stay for a session from now.
func extended(p node.Pass, now time.Time) node.Verdict {
	p.Visitor = node.VisitorID{visitorSeven}
	if p.AcceptedAt.IsZero() {
		p.AcceptedAt = now
	}
	p.LeaseEnd = now.Add(5 * time.Minute)
	return node.Verdict{Admit: true, SetPass: true, Pass: p}
}

func (o *onTheSite) clock() time.Time { return time.Unix(0, o.now.Load()) }

func (o *onTheSite) pass(d time.Duration) { o.now.Add(int64(d)) }

func (o *onTheSite) use(c *Config) { c.Clock = o.clock }

// expectAsked waits until a pass is judged that ends then.
func (o *onTheSite) expectAsked(t *testing.T, end time.Time) {
	t.Helper()
	select {
	case p := <-o.asked:
		if !p.LeaseEnd.Equal(end) || p.Visitor != (node.VisitorID{visitorSeven}) {
			t.Fatalf("a pass of %v that ends at %v is judged, want one that ends at %v", p.Visitor, p.LeaseEnd, end)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no pass is judged")
	}
}

func (o *onTheSite) expectNotAsked(t *testing.T) {
	t.Helper()
	select {
	case p := <-o.asked:
		t.Fatalf("a pass that ends at %v is judged", p.LeaseEnd)
	default:
	}
}

// settled waits until no judgement is under way at a front: there may be none in tests
// that count them.
func settled(t *testing.T) {
	t.Helper()
	waitFor(t, "the end of the judgement", func() bool {
		buf := make([]byte, 1<<20)
		return !strings.Contains(string(buf[:runtime.Stack(buf, true)]), "(*activity).judge")
	})
}

// upgraded opens a tunnel to an origin that echoes.
func upgraded(t *testing.T, f *front, path string) *conn {
	t.Helper()
	c, resp := f.upgrade(path)
	if resp.StatusCode != 101 {
		t.Fatalf("got %d", resp.StatusCode)
	}
	expect(t, c.br, "hello ")
	return c
}

// talk says something in a tunnel to an origin that echoes.
func (c *conn) talk(t *testing.T, text string) {
	t.Helper()
	io.WriteString(c, text)
	expect(t, c.br, text)
}

// TestWhoTalksInATunnelIsActive goes on for several sessions, with the pass of the last
// judgement each time.
func TestWhoTalksInATunnelIsActive(t *testing.T) {
	o := newOnTheSite(t)
	f := serveTo(t, fakeRooms{room: o}, socketOrigin(t), o.use)
	c := upgraded(t, f, "/")
	part := o.settings.SessionDuration / activePart
	end := o.clock().Add(o.settings.SessionDuration)
	for range 3 * activePart {
		o.pass(part - time.Nanosecond)
		for range 3 {
			c.talk(t, "early ")
		}
		o.expectNotAsked(t)
		o.pass(time.Nanosecond)
		c.talk(t, "in time ")
		o.expectAsked(t, end)
		end = o.clock().Add(o.settings.SessionDuration)
		settled(t)
		c.talk(t, "again ")
		o.expectNotAsked(t)
	}
}

// TestWhatWasSaidLastCounts says something once, soon after the pass was judged, and then
// nothing: the visitor is active from then on, and not from when the request came.
func TestWhatWasSaidLastCounts(t *testing.T) {
	t.Parallel()
	o := newOnTheSite(t)
	o.settings.SessionDuration = 8 * time.Second
	f := serveTo(t, fakeRooms{room: o}, socketOrigin(t)) // by the machine's clock
	c := upgraded(t, f, "/")
	c.talk(t, "something")
	select {
	case <-o.asked:
	case <-time.After(10 * time.Second):
		t.Error("no pass is judged")
	}
	settled(t)
	time.Sleep(5 * o.settings.SessionDuration / activePart / 4) // nothing more is said
	o.expectNotAsked(t)
}

// TestTunnelsEndWithTheSession has the room say that the visitor is not on the site any
// more, in all the ways that there are.
func TestTunnelsEndWithTheSession(t *testing.T) {
	stranger := node.Pass{Visitor: node.VisitorID{9}, AcceptedAt: time.Unix(1, 0), LeaseEnd: time.Unix(2, 0)}
	for name, tt := range map[string]struct {
		after   time.Duration
		says    *node.Verdict // nil: is not asked
		disable bool          // renewal
		goesOn  bool
		freed   bool // the place that the visitor got as somebody new
	}{
		"has to wait":                          {6 * time.Minute, &node.Verdict{New: true, SetPass: true, Pass: node.Pass{Visitor: node.VisitorID{9}}}, false, false, false},
		"is refused":                           {6 * time.Minute, &node.Verdict{ClearPass: true}, false, false, false},
		"ended, and there is a place":          {time.Minute, &node.Verdict{Admit: true, SetPass: true, Pass: stranger}, false, false, true},
		"silent for long, and there is one":    {6 * time.Minute, &node.Verdict{Admit: true, SetPass: true, Pass: stranger}, false, true, false},
		"not renewed, and has run out":         {6 * time.Minute, nil, true, false, false},
		"not renewed, and runs":                {4 * time.Minute, &node.Verdict{Admit: true, Pass: node.Pass{Visitor: node.VisitorID{visitorSeven}}}, true, true, false},
		"goes on with the ticket of elsewhere": {time.Minute, &node.Verdict{Admit: true, SetPass: true, Pass: node.Pass{Visitor: node.VisitorID{visitorSeven}}}, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOnTheSite(t)
			o.says = make(chan node.Verdict, 1)
			o.settings.DisableSessionRenewal = tt.disable
			f := serveTo(t, fakeRooms{room: o}, socketOrigin(t), o.use)
			c := upgraded(t, f, "/")
			end := o.clock().Add(o.settings.SessionDuration)
			o.pass(tt.after)
			if tt.says != nil {
				o.says <- *tt.says
			}
			io.WriteString(c, "x")
			if tt.goesOn {
				expect(t, c.br, "x")
				o.expectAsked(t, end)
				settled(t)
				c.talk(t, "still there")
			} else if got, err := io.ReadAll(c.br); err == nil && strings.Trim(string(got), "x") != "" {
				t.Errorf("got %q, want the end", got)
			} else if isTimeout(err) {
				t.Error("the tunnel goes on")
			}
			if ended := o.takeEnded(); (len(ended) == 1 && ended[0].Visitor == stranger.Visitor) != tt.freed {
				t.Errorf("ended %v", ended)
			}
			if n := o.queued.Load(); n != 0 {
				t.Errorf("%d queue that nobody will come for", n)
			}
			if !tt.goesOn {
				f.tunnelsEnd()
			}
		})
	}
}

// TestNoByteWaitsForTheRoom has the room take its time.
func TestNoByteWaitsForTheRoom(t *testing.T) {
	o := newOnTheSite(t)
	o.says = make(chan node.Verdict)
	f := serveTo(t, fakeRooms{room: o}, socketOrigin(t), o.use)
	c := upgraded(t, f, "/")
	end := o.clock().Add(o.settings.SessionDuration)
	for range 5 {
		o.pass(time.Minute)
		c.talk(t, strings.Repeat("x", 50000))
	}
	o.expectAsked(t, end)
	o.expectNotAsked(t) // one at a time
	o.says <- node.Verdict{}
	if _, err := io.ReadAll(c.br); isTimeout(err) {
		t.Error("the tunnel goes on")
	}
}

// TestAPanicOfTheRoomCostsNobodyTheTunnel: nor the next judgement.
func TestAPanicOfTheRoomCostsNobodyTheTunnel(t *testing.T) {
	o := newOnTheSite(t)
	var once sync.Once
	plain := o.decide
	o.decide = func(p node.Pass, known bool, now time.Time) node.Verdict {
		if known {
			once.Do(func() { panic("at the room") })
		}
		return plain(p, known, now)
	}
	f := serveTo(t, fakeRooms{room: o}, socketOrigin(t), o.use)
	c := upgraded(t, f, "/")
	end := o.clock().Add(o.settings.SessionDuration)
	o.pass(time.Minute)
	c.talk(t, "one")
	settled(t)
	o.pass(time.Minute)
	c.talk(t, "two")
	o.expectAsked(t, end)
}

// changingRooms is a room that may be gone: suspended, or another one stands there.
type changingRooms struct {
	fakeRooms
	next fakeRooms
	gone atomic.Bool
}

func (r *changingRooms) Route(host, path string) Room {
	if r.gone.Load() {
		return r.next.Route(host, path)
	}
	return r.fakeRooms.Route(host, path)
}

func TestASuspendedRoomJudgesNoTunnel(t *testing.T) {
	o := newOnTheSite(t)
	rooms := &changingRooms{fakeRooms: fakeRooms{room: o}}
	f := serveTo(t, rooms, socketOrigin(t), o.use)
	c := upgraded(t, f, "/")
	end := o.clock().Add(o.settings.SessionDuration)
	rooms.gone.Store(true)
	o.pass(time.Hour)
	c.talk(t, "x")
	settled(t)
	o.expectNotAsked(t)
	rooms.gone.Store(false)
	o.pass(time.Minute)
	c.talk(t, "x")
	o.expectAsked(t, end)
}

func TestATunnelEndsWhereAnotherRoomStands(t *testing.T) {
	o := newOnTheSite(t)
	rooms := &changingRooms{fakeRooms: fakeRooms{room: o}, next: fakeRooms{room: newOnTheSite(t)}}
	f := serveTo(t, rooms, socketOrigin(t), o.use)
	c := upgraded(t, f, "/")
	c.talk(t, "x")
	rooms.gone.Store(true) // the room was deleted and made again, or moved away
	o.pass(o.settings.SessionDuration / activePart)
	io.WriteString(c, "x")
	if _, err := io.ReadAll(c.br); isTimeout(err) {
		t.Error("the tunnel goes on")
	}
	o.expectNotAsked(t)
}

func TestWithoutASessionNothingIsJudged(t *testing.T) {
	for name, rooms := range map[string]Rooms{
		"no room": fakeRooms{},
		"no pass": fakeRooms{room: newRoom(always)},
	} {
		o := newOnTheSite(t)
		f := serveTo(t, rooms, socketOrigin(t), o.use)
		c := upgraded(t, f, "/")
		for range 3 {
			o.pass(time.Hour)
			c.talk(t, name)
		}
		settled(t)
		o.expectNotAsked(t)
	}
}

// slowly is an origin that takes and gives bodies piece by piece, when told to.
func slowly(next <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/known" {
			w.Header().Set("Content-Length", "3")
		}
		for range 3 {
			w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			<-next
		}
	})
}

// TestBodiesKeepVisitorsActive: an answer and an upload, of all forms. Even when the
// session is over they are finished as they were begun, and nobody is asked any more.
func TestBodiesKeepVisitorsActive(t *testing.T) {
	for _, goesOn := range []bool{true, false} {
		for _, path := range []string{"/known", "/chunked", "/unending"} {
			t.Run(fmt.Sprintf("answer %s, goes on %v", path, goesOn), func(t *testing.T) {
				o, next := newOnTheSite(t), make(chan struct{}, 3)
				if !goesOn {
					o.says = make(chan node.Verdict, 3)
					o.says <- node.Verdict{}
				}
				f := serve(t, fakeRooms{room: o}, slowly(next), o.use)
				c := f.dial()
				version := "1.1"
				if path == "/unending" {
					version = "1.0"
				}
				fmt.Fprintf(c, "GET %s HTTP/%s\r\nHost: a\r\nConnection: close\r\n\r\n", path, version)
				resp := c.response("GET")
				end := o.clock().Add(o.settings.SessionDuration)
				for i := range 3 {
					expect(t, resp.Body, "x")
					if i > 0 && (goesOn || i == 1) {
						o.expectAsked(t, end)
						end = o.clock().Add(o.settings.SessionDuration)
					}
					settled(t)
					o.pass(time.Minute)
					next <- struct{}{}
				}
				if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
					t.Errorf("at the end: %q, %v", rest, err)
				}
				settled(t)
				o.expectNotAsked(t)
			})
		}
		t.Run(fmt.Sprintf("upload, goes on %v", goesOn), func(t *testing.T) {
			o, next := newOnTheSite(t), make(chan struct{}, 3)
			if !goesOn {
				o.says = make(chan node.Verdict, 3)
				o.says <- node.Verdict{}
			}
			begun := make(chan struct{}, 1)
			f := serve(t, fakeRooms{room: o}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begun <- struct{}{}
				slowly(next).ServeHTTP(w, r)
			}), o.use)
			c := f.dial()
			io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 9002\r\n\r\n"+strings.Repeat("x", 9000))
			select { // an origin is taken before the watch over the pass begins
			case <-begun:
			case <-time.After(10 * time.Second):
				t.Fatal("the upload does not begin")
			}
			end := o.clock().Add(o.settings.SessionDuration)
			o.pass(time.Minute)
			io.WriteString(c, "x")
			o.expectAsked(t, end)
			settled(t)
			for range 3 {
				next <- struct{}{}
			}
			io.WriteString(c, "x")
			if got := c.read("POST"); got.body != "xxx" {
				t.Errorf("got %q", got.body)
			}
		})
	}
}

// TestTheEndOfALongAnswerCounts: who has loaded something for long is active from its
// end on.
func TestTheEndOfALongAnswerCounts(t *testing.T) {
	o, next := newOnTheSite(t), make(chan struct{}, 3)
	f := serve(t, fakeRooms{room: o}, slowly(next), o.use)
	resp, err := f.client.Get(f.url("/chunked"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	expect(t, resp.Body, "x")
	end := o.clock().Add(o.settings.SessionDuration)
	o.pass(time.Minute)
	next <- struct{}{}
	expect(t, resp.Body, "x")
	o.expectAsked(t, end)
	settled(t)
	end = o.clock().Add(o.settings.SessionDuration)
	o.pass(time.Second)
	next <- struct{}{}
	expect(t, resp.Body, "x")
	o.expectNotAsked(t)
	next <- struct{}{}
	io.Copy(io.Discard, resp.Body)
	o.expectAsked(t, end)
}

// TestIdleTunnelsCostNoGoroutines compares tunnels of a room with those without one.
func TestIdleTunnelsCostNoGoroutines(t *testing.T) {
	const many = 50
	grown := func(rooms Rooms) int {
		f := serveTo(t, rooms, socketOrigin(t))
		first := upgraded(t, f, "/") // what is there for all
		defer first.Close()
		before := runtime.NumGoroutine()
		for range many {
			c := upgraded(t, f, "/")
			c.talk(t, "x")
		}
		return runtime.NumGoroutine() - before
	}
	plain, watched := grown(nil), grown(fakeRooms{room: newOnTheSite(t)})
	if watched > plain+many/10 {
		t.Errorf("%d tunnels take %d goroutines, and %d in a room", many, plain, watched)
	}
}

// A session that the origin has ended in its answer to a long upload is not judged again.
func TestNobodyIsJudgedAfterTheEnd(t *testing.T) {
	o := newOnTheSite(t)
	o.settings.EnabledOriginCommands = []room.OriginCommand{room.Revoke}
	got := make(chan struct{}, 100)
	f := serve(t, fakeRooms{room: o}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buf := make([]byte, 100)
		for {
			if n, err := r.Body.Read(buf); n > 0 {
				got <- struct{}{}
			} else if err != nil {
				break
			}
		}
		w.Header().Set("Ropeline-Command", "revoke")
	}), o.use)
	c := f.dial()
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na")
	<-got
	o.pass(time.Minute)
	io.WriteString(c, "b")
	<-got
	<-o.asked // while the upload goes on
	settled(t)
	o.pass(time.Second)
	io.WriteString(c, "c")
	c.read("POST")
	settled(t)
	if n := len(o.takeEnded()); n < 1 {
		t.Fatal("the session is not ended")
	}
	o.expectNotAsked(t)
}
