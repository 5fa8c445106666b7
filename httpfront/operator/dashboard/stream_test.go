package dashboard

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// read returns the next event that is no comment.
func read(t *testing.T, next func() (sse, bool)) sse {
	t.Helper()
	for {
		e, ok := next()
		if !ok {
			t.Fatal("the stream has ended")
		}
		if e.name != "" {
			return e
		}
	}
}

func TestWatchTellsWhatChanged(t *testing.T) {
	s := serve(t, newFakeMesh(1, 3, 2), func(p *pace) { p.interval = 10 * time.Millisecond })
	resp := s.get("/api/v1/watch")
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the stream is %q, cached %q", got, resp.Header.Get("Cache-Control"))
	}
	next := reading(t, resp)
	first := read(t, next)
	var all Snapshot
	if err := json.Unmarshal(first.data, &all); err != nil || first.name != "snapshot" || len(all.Rooms) != 3 || len(all.Nodes) != 2 {
		t.Fatalf("first comes %s %s: %v", first.name, first.data, err)
	}
	id := s.mesh.snap.Rooms[1].ID
	s.mesh.change(func(f *fakeMesh) { f.snap.Rooms[1].Waiting = 4711 })
	second := read(t, next)
	var d delta
	if err := json.Unmarshal(second.data, &d); err != nil || second.name != "delta" {
		t.Fatalf("then comes %s %s: %v", second.name, second.data, err)
	}
	set := d.Lists["rooms"].Set
	if len(d.Lists) != 1 || len(set) != 1 || len(set[0]) != 2 || string(set[0]["id"]) != `"`+id+`"` || string(set[0]["waiting"]) != "4711" {
		t.Errorf("one field changed, and it tells %s", second.data)
	}
	s.mesh.change(func(f *fakeMesh) { f.snap.Rooms = f.snap.Rooms[:1] })
	if third := read(t, next); !strings.Contains(string(third.data), `"gone":[`) {
		t.Errorf("two rooms are gone, and it tells %s", third.data)
	}
}

func TestWatchOfARoomEndsWithIt(t *testing.T) {
	mesh := newFakeMesh(1, 3, 2)
	s := serve(t, mesh, func(p *pace) { p.interval = 10 * time.Millisecond })
	id := mesh.snap.Rooms[0].ID
	next := reading(t, s.get("/api/v1/rooms/"+id+"/watch"))
	var d Detail
	if e := read(t, next); json.Unmarshal(e.data, &d) != nil || d.ID != id || len(d.Sites) != 4 || len(d.Buckets) == 0 {
		t.Errorf("got %s %s", e.name, e.data)
	}
	mesh.change(func(f *fakeMesh) {
		d := f.details[id]
		d.Cursor = nil
		f.details[id] = d
	})
	if e := read(t, next); e.name != "delta" || !strings.Contains(string(e.data), `"cursor":null`) {
		t.Errorf("the cursor is gone, and it tells %s %s", e.name, e.data)
	}
	mesh.change(func(f *fakeMesh) { delete(f.details, id) })
	if e := read(t, next); e.name != "gone" {
		t.Errorf("the room is gone, and it tells %s %s", e.name, e.data)
	}
	if e, ok := next(); ok {
		t.Errorf("after its end comes %v", e)
	}
}

func TestWatchNeedsAToken(t *testing.T) {
	s := serve(t, newFakeMesh(1, 3, 2), func(p *pace) { p.interval = 10 * time.Millisecond; p.heartbeat = 10 * time.Millisecond })
	for _, path := range []string{"/api/v1/watch", "/api/v1/rooms/x/watch", "/api/v1/rooms/x/history"} {
		for _, token := range []string{"Bearer wrong", "Bearer ", "Basic " + someToken} {
			resp := s.get(path, "Authorization", token)
			if resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s with %q: got %s", path, token, resp.Status)
			}
		}
	}
	next := reading(t, s.get("/api/v1/watch"))
	read(t, next)
	s.allow(someToken)
	if e := read(t, next); e.name != "revoked" {
		t.Errorf("the token is good no more, and it tells %s", e.name)
	}
	if e, ok := next(); ok {
		t.Errorf("after its end comes %v", e)
	}
}

func TestWatchHasSoManyReaders(t *testing.T) {
	s := serve(t, newFakeMesh(1, 3, 2), func(p *pace) { p.readers = 2; p.heartbeat = 10 * time.Millisecond })
	one, two := s.get("/api/v1/watch"), s.get("/api/v1/rooms/"+s.mesh.snap.Rooms[0].ID+"/watch")
	read(t, reading(t, one))
	read(t, reading(t, two))
	three := s.get("/api/v1/watch")
	if b := body(t, three); three.StatusCode != 503 || three.Header.Get("Retry-After") == "" || !strings.Contains(string(b), "2 others") {
		t.Errorf("one too many gets %s %s", three.Status, b)
	}
	one.Body.Close()
	waitFor(t, "a reader who left to make room", func() bool { return s.get("/api/v1/watch").StatusCode == 200 })
}

func TestWatchEndsWithRun(t *testing.T) {
	s := serve(t, newFakeMesh(1, 3, 2), nil)
	next := reading(t, s.get("/api/v1/watch"))
	read(t, next)
	s.stop()
	if e, ok := next(); ok {
		t.Errorf("after the end comes %v", e)
	}
	if resp := s.get("/api/v1/watch"); resp.StatusCode != 503 {
		t.Errorf("who comes then gets %s", resp.Status)
	}
}

func TestNobodyIsAskedWhileNobodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mesh := newFakeMesh(1, 3, 2)
		h, err := New(Config{Source: mesh, Authorize: func(string) bool { return true }})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = h.Run(t.Context()) }()
		time.Sleep(time.Minute + 500*time.Millisecond)
		if n := mesh.timesAsked(); n != 0 {
			t.Errorf("asked %d times", n)
		}
		hub, err := h.enter("")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if n := mesh.timesAsked(); n != 10 {
			t.Errorf("asked %d times in ten seconds", n)
		}
		h.leave("", hub)
		time.Sleep(time.Minute)
		if n := mesh.timesAsked(); n != 10 {
			t.Errorf("asked %d times, some after the last reader left", n)
		}
	})
}

// newStream returns a stream about a fake mesh, and what refreshes it.
func newStream(t *testing.T, mesh *fakeMesh) (*stream, func()) {
	t.Helper()
	h := &hub{get: func(now time.Time) (any, bool) { return mesh.Snapshot(now), true }}
	refresh := func() {
		if err := h.refresh(time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	refresh()
	return &stream{
		hub: h, allowed: func() bool { return true }, over: make(chan struct{}), heartbeat: 5 * time.Second,
		extend: func() {}, left: func() {},
	}, refresh
}

// whole reads one event, however small the pieces are in which it is read.
func whole(t *testing.T, s *stream) string {
	t.Helper()
	var text strings.Builder
	for p := make([]byte, 1000); !strings.HasSuffix(text.String(), "\n\n"); {
		n, err := s.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(p[:n])
	}
	return text.String()
}

func TestSlowReaderGetsTheNewestState(t *testing.T) {
	mesh := newFakeMesh(1, 20, 2)
	mesh.moving = true
	s, refresh := newStream(t, mesh)
	if e := whole(t, s); !strings.HasPrefix(e, "event: snapshot\n") {
		t.Fatalf("first comes %.40s", e)
	}
	refresh()
	if e := whole(t, s); !strings.HasPrefix(e, "event: delta\n") {
		t.Errorf("one change later comes %.40s", e)
	}
	for range 100 {
		refresh()
	}
	want := string(s.hub.current.Load().snapshot)
	if e := whole(t, s); e != want {
		t.Errorf("a hundred changes later comes %.40s, and not the newest snapshot", e)
	}
	refresh()
	if e := whole(t, s); !strings.HasPrefix(e, "event: delta\n") {
		t.Errorf("then comes %.40s", e)
	}
}

func TestHeartbeatWhileNothingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, refresh := newStream(t, newFakeMesh(1, 2, 2))
		whole(t, s)
		begun := time.Now()
		refresh() // nothing but the time is other
		if e := whole(t, s); !strings.HasPrefix(e, ":") || time.Since(begun) != 5*time.Second {
			t.Errorf("after %v comes %q", time.Since(begun), e)
		}
	})
}

// TestSlowConnectionIsDropped: who does not read at all is not waited for.
func TestSlowConnectionIsDropped(t *testing.T) {
	mesh := newFakeMesh(1, 400, 12)
	mesh.moving = true
	s := serveOn(t, tight{listen(t)}, mesh, func(p *pace) { p.interval = time.Millisecond; p.write = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(tightBuffer); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("GET /api/v1/watch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + someToken + "\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	const ok = "HTTP/1.1 200 OK"
	begun := make([]byte, len(ok))
	if _, err := io.ReadFull(conn, begun); err != nil || string(begun) != ok {
		t.Fatalf("the answer begins with %q: %v", begun, err)
	}
	waitFor(t, "the reader to be dropped", func() bool {
		s.Handler.mu.Lock()
		defer s.Handler.mu.Unlock()
		return s.readers == 0
	})
}

// TestReaderOutlivesTheWriteTimeoutOfItsServer, within which all of an answer has to be sent.
func TestReaderOutlivesTheWriteTimeoutOfItsServer(t *testing.T) {
	s := serve(t, newFakeMesh(1, 2, 2), func(p *pace) { p.interval = 20 * time.Millisecond })
	next := reading(t, s.get("/api/v1/watch"))
	read(t, next)
	var waiting atomic.Int64
	for begun := time.Now(); time.Since(begun) < 2*writeTimeout; {
		s.mesh.change(func(f *fakeMesh) { f.snap.Rooms[0].Waiting = waiting.Add(1) })
		read(t, next)
	}
}
