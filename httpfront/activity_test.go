package httpfront

import (
	"bufio"
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
	t     *testing.T
	now   atomic.Int64              // ns since 1970
	given atomic.Pointer[node.Pass] // the last one
	asked chan [2]node.Pass         // one that is judged, and the last that was given before
	says  chan node.Verdict         // nil: the visitor may stay for another session
}

func newOnTheSite(t *testing.T) *onTheSite {
	o := &onTheSite{t: t, asked: make(chan [2]node.Pass, 100)}
	o.now.Store(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC).UnixNano())
	o.fakeRoom = newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		v := enter(p, known, now)
		if known {
			o.asked <- [2]node.Pass{p, *o.given.Load()}
			if o.says != nil {
				select {
				case v = <-o.says:
				case <-t.Context().Done():
				}
			}
		}
		if v.SetPass {
			o.given.Store(&v.Pass)
		}
		return v
	})
	return o
}

func (o *onTheSite) clock() time.Time { return time.Unix(0, o.now.Load()) }

func (o *onTheSite) pass(d time.Duration) { o.now.Add(int64(d)) }

func (o *onTheSite) use(c *Config) { c.Clock = o.clock }

// endsOnce has the next judgement end the session.
func (o *onTheSite) endsOnce() {
	o.says = make(chan node.Verdict, 1)
	o.says <- node.Verdict{}
}

// tunnel opens one to an origin that echoes.
func (o *onTheSite) tunnel(rooms Rooms) (*front, *conn) {
	o.t.Helper()
	f := serveTo(o.t, rooms, socketOrigin(o.t), o.use)
	return f, upgraded(o.t, f, "/")
}

// expectAsked waits until the pass that was given last is judged.
func (o *onTheSite) expectAsked() {
	o.t.Helper()
	if of := await(o.t, "a judgement", o.asked); of[0] != of[1] {
		o.t.Fatalf("%+v is judged, want the pass that was given last, %+v", of[0], of[1])
	}
}

func (o *onTheSite) expectNotAsked() {
	o.t.Helper()
	if n := len(o.asked); n != 0 {
		o.t.Fatalf("%d passes are judged", n)
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
	equal(t, "an upgrade", resp.StatusCode, 101)
	expect(t, c.br, "hello ")
	return c
}

// talk says something in a tunnel to an origin that echoes.
func (c *conn) talk(t *testing.T, text string) {
	t.Helper()
	io.WriteString(c, text)
	expect(t, c.br, text)
}

// over waits for the end of a tunnel, in which nothing but x has been said.
func (c *conn) over(t *testing.T) {
	t.Helper()
	if got, err := io.ReadAll(c.br); isTimeout(err) {
		t.Error("the tunnel goes on")
	} else if err == nil && strings.Trim(string(got), "x") != "" {
		t.Errorf("got %q, want the end", got)
	}
}

// TestWhoTalksInATunnelIsActive goes on for several sessions, with the pass of the last
// judgement each time.
func TestWhoTalksInATunnelIsActive(t *testing.T) {
	o := newOnTheSite(t)
	_, c := o.tunnel(fakeRooms{room: o})
	part := o.settings.SessionDuration / activePart
	for range 3 * activePart {
		o.pass(part - time.Nanosecond)
		for range 3 {
			c.talk(t, "early ")
		}
		o.expectNotAsked()
		o.pass(time.Nanosecond)
		c.talk(t, "in time ")
		o.expectAsked()
		settled(t)
		c.talk(t, "again ")
		o.expectNotAsked()
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
	o.expectAsked()
	settled(t)
	time.Sleep(5 * o.settings.SessionDuration / activePart / 4) // nothing more is said
	o.expectNotAsked()
}

// TestTunnelsEndWithTheSession has the room say that the visitor is not on the site any
// more, in all the ways that there are.
func TestTunnelsEndWithTheSession(t *testing.T) {
	stranger := node.Pass{Visitor: node.VisitorID{9}, AcceptedAt: time.Unix(1, 0), LeaseEnd: time.Unix(2, 0)}
	seven := node.Pass{Visitor: node.VisitorID{7}}
	for name, tt := range map[string]struct {
		after      time.Duration
		says       *node.Verdict // nil: is not asked
		notRenewed bool
		goesOn     bool
		freed      bool // the place that the visitor got as somebody new
	}{
		"has to wait":                          {after: 6 * time.Minute, says: &node.Verdict{New: true, SetPass: true, Pass: node.Pass{Visitor: node.VisitorID{9}}}},
		"is refused":                           {after: 6 * time.Minute, says: &node.Verdict{ClearPass: true}},
		"ended, and there is a place":          {after: time.Minute, says: &node.Verdict{Admit: true, SetPass: true, Pass: stranger}, freed: true},
		"silent for long, and there is one":    {after: 6 * time.Minute, says: &node.Verdict{Admit: true, SetPass: true, Pass: stranger}, goesOn: true},
		"not renewed, and has run out":         {after: 6 * time.Minute, notRenewed: true},
		"not renewed, and runs":                {after: 4 * time.Minute, says: &node.Verdict{Admit: true, Pass: seven}, notRenewed: true, goesOn: true},
		"goes on with the ticket of elsewhere": {after: time.Minute, says: &node.Verdict{Admit: true, SetPass: true, Pass: seven}, goesOn: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOnTheSite(t)
			o.says = make(chan node.Verdict, 1)
			o.settings.DisableSessionRenewal = tt.notRenewed
			f, c := o.tunnel(fakeRooms{room: o})
			o.pass(tt.after)
			if tt.says != nil {
				o.says <- *tt.says
			}
			io.WriteString(c, "x")
			if tt.goesOn {
				expect(t, c.br, "x")
				o.expectAsked()
				settled(t)
				c.talk(t, "still there")
			} else {
				c.over(t)
				f.tunnelsEnd()
			}
			equal(t, "whose session is ended", o.whoEnded(), map[bool]string{true: "[9]", false: "[]"}[tt.freed])
			equal(t, "how many queue that nobody will come for", o.queued.Load(), 0)
		})
	}
}

// TestNoByteWaitsForTheRoom has the room take its time.
func TestNoByteWaitsForTheRoom(t *testing.T) {
	o := newOnTheSite(t)
	o.says = make(chan node.Verdict)
	_, c := o.tunnel(fakeRooms{room: o})
	for range 5 {
		o.pass(time.Minute)
		c.talk(t, strings.Repeat("x", 50000))
	}
	o.expectAsked()
	o.expectNotAsked() // one at a time
	o.says <- node.Verdict{}
	c.over(t)
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
	_, c := o.tunnel(fakeRooms{room: o})
	for range 2 {
		o.expectNotAsked()
		o.pass(time.Minute)
		c.talk(t, "x")
		settled(t)
	}
	o.expectAsked()
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
	_, c := o.tunnel(rooms)
	rooms.gone.Store(true)
	o.pass(time.Hour)
	c.talk(t, "x")
	settled(t)
	o.expectNotAsked()
	rooms.gone.Store(false)
	o.pass(time.Minute)
	c.talk(t, "x")
	o.expectAsked()
}

func TestATunnelEndsWhereAnotherRoomStands(t *testing.T) {
	o := newOnTheSite(t)
	rooms := &changingRooms{fakeRooms: fakeRooms{room: o}, next: fakeRooms{room: newOnTheSite(t)}}
	_, c := o.tunnel(rooms)
	c.talk(t, "x")
	rooms.gone.Store(true) // the room was deleted and made again, or moved away
	o.pass(o.settings.SessionDuration / activePart)
	io.WriteString(c, "x")
	c.over(t)
	o.expectNotAsked()
}

func TestWithoutASessionNothingIsJudged(t *testing.T) {
	for name, rooms := range map[string]Rooms{
		"no room": fakeRooms{},
		"no pass": fakeRooms{room: newRoom(always)},
	} {
		o := newOnTheSite(t)
		_, c := o.tunnel(rooms)
		for range 3 {
			o.pass(time.Hour)
			c.talk(t, name)
		}
		settled(t)
		o.expectNotAsked()
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
		for path, version := range map[string]string{"/known": "1.1", "/chunked": "1.1", "/unending": "1.0"} {
			t.Run(fmt.Sprintf("answer %s, goes on %v", path, goesOn), func(t *testing.T) {
				o, next := newOnTheSite(t), make(chan struct{}, 3)
				if !goesOn {
					o.endsOnce()
				}
				c := serve(t, fakeRooms{room: o}, slowly(next), o.use).dial()
				fmt.Fprintf(c, "GET %s HTTP/%s\r\nHost: a\r\nConnection: close\r\n\r\n", path, version)
				resp := c.response("GET")
				for i := range 3 {
					expect(t, resp.Body, "x")
					if i == 1 || i == 2 && goesOn {
						o.expectAsked()
					}
					settled(t)
					o.pass(time.Minute)
					next <- struct{}{}
				}
				equal(t, "the end", whole(t, resp).body, "")
				settled(t)
				o.expectNotAsked()
			})
		}
		t.Run(fmt.Sprintf("upload, goes on %v", goesOn), func(t *testing.T) {
			o, next := newOnTheSite(t), make(chan struct{}, 3)
			if !goesOn {
				o.endsOnce()
			}
			begun := make(chan struct{}, 1)
			c := serve(t, fakeRooms{room: o}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begun <- struct{}{}
				slowly(next).ServeHTTP(w, r)
			}), o.use).dial()
			io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 9002\r\n\r\n"+strings.Repeat("x", 9000))
			await(t, "the upload", begun) // an origin is taken before the watch over the pass begins
			o.pass(time.Minute)
			io.WriteString(c, "x")
			o.expectAsked()
			settled(t)
			for range 3 {
				next <- struct{}{}
			}
			io.WriteString(c, "x")
			equal(t, "the answer", c.read("POST").body, "xxx")
		})
	}
}

// TestTheEndOfALongAnswerCounts: who has loaded something for long is active from its
// end on.
func TestTheEndOfALongAnswerCounts(t *testing.T) {
	o, next := newOnTheSite(t), make(chan struct{}, 3)
	body := serve(t, fakeRooms{room: o}, slowly(next), o.use).open("/chunked").Body
	expect(t, body, "x")
	o.pass(time.Minute)
	next <- struct{}{}
	expect(t, body, "x")
	o.expectAsked()
	settled(t)
	o.pass(time.Second)
	next <- struct{}{}
	expect(t, body, "x")
	o.expectNotAsked()
	next <- struct{}{}
	io.Copy(io.Discard, body)
	o.expectAsked()
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
	got := make(chan byte)
	c := serve(t, fakeRooms{room: o}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for body := bufio.NewReader(r.Body); ; {
			b, err := body.ReadByte()
			if err != nil {
				break
			}
			got <- b
		}
		w.Header().Set("Ropeline-Command", "revoke")
	}), o.use).dial()
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na")
	await(t, "the first byte", got)
	o.pass(time.Minute)
	io.WriteString(c, "b")
	await(t, "the second byte", got)
	o.expectAsked() // while the upload goes on
	settled(t)
	o.pass(time.Second)
	io.WriteString(c, "c")
	await(t, "the third byte", got)
	c.read("POST")
	settled(t)
	equal(t, "whose session is ended", o.whoEnded(), "[7]")
	o.expectNotAsked()
}
