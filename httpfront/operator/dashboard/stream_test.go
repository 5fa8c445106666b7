package dashboard

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// quick tells of changes, and looks whether readers may go on, every 10 ms.
func quick(p *pace) { p.interval, p.heartbeat = 10*time.Millisecond, 10*time.Millisecond }

func TestWatchTellsWhatChanged(t *testing.T) {
	s := serve(t, newFakeMesh(1, 3, 2), quick)
	f := s.follow("/api/v1/watch")
	if got := f.head.Get("Content-Type"); got != "text/event-stream" || f.head.Get("Cache-Control") != "no-store" {
		t.Errorf("the stream is %q, cached %q", got, f.head.Get("Cache-Control"))
	}
	if all := decode[Snapshot](f.want("snapshot")); len(all.Rooms) != 3 || len(all.Nodes) != 2 {
		t.Errorf("first comes %+v", all)
	}
	s.mesh.change(func(f *fakeMesh) { f.snap.Rooms[1].Waiting = 4711 })
	f.want("delta", `"lists":{"rooms":{"set":[{"id":"`+s.mesh.snap.Rooms[1].ID+`","waiting":4711}]}}}`) // one field, and no more
	s.mesh.change(func(f *fakeMesh) { f.snap.Rooms = f.snap.Rooms[:1] })
	f.want("delta", `"gone":[`)
}

func TestWatchOfARoomEndsWithIt(t *testing.T) {
	s := serve(t, newFakeMesh(1, 3, 2), quick)
	id := s.room()
	f := s.follow("/api/v1/rooms/" + id + "/watch")
	if d := decode[Detail](f.want("snapshot")); d.ID != id || len(d.Sites) != 4 || len(d.Buckets) == 0 {
		t.Errorf("got %+v", d)
	}
	s.mesh.changeDetail(id, func(d *Detail) { d.Cursor = nil })
	f.want("delta", `"cursor":null`)
	s.mesh.change(func(f *fakeMesh) { delete(f.details, id) })
	f.want("gone")
	f.wantEnd()
}

func TestWatchNeedsAToken(t *testing.T) {
	s := serve(t, newFakeMesh(1, 3, 2), quick)
	for _, path := range []string{"/api/v1/watch", "/api/v1/rooms/x/watch"} {
		for _, token := range []string{"Bearer wrong", "Bearer ", "Basic " + someToken} {
			resp := s.get(path, "Authorization", token)
			if resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s with %q: got %s", path, token, resp.Status)
			}
		}
	}
	f := s.follow("/api/v1/watch")
	f.want("snapshot")
	s.allow()
	f.want("revoked")
	f.wantEnd()
}

func TestWatchHasSoManyReaders(t *testing.T) {
	s := serve(t, newFakeMesh(1, 3, 2), func(p *pace) {
		quick(p)
		p.readers = 2
	})
	one, two := s.follow("/api/v1/watch"), s.follow("/api/v1/rooms/"+s.room()+"/watch")
	one.want("snapshot")
	two.want("snapshot")
	three := s.get("/api/v1/watch")
	if b := body(three); three.StatusCode != 503 || three.Header.Get("Retry-After") == "" || !strings.Contains(string(b), "2 others") {
		t.Errorf("one too many gets %s %s", three.Status, b)
	}
	one.body.Close()
	waitFor(t, "a reader who left to make room", func() bool { return s.get("/api/v1/watch").StatusCode == 200 })
}

func TestWatchEndsWithRun(t *testing.T) {
	s := serve(t, newFakeMesh(1, 3, 2), nil)
	f := s.follow("/api/v1/watch")
	f.want("snapshot")
	s.stop()
	f.wantEnd()
	equal(t, "who comes then", s.get("/api/v1/watch").StatusCode, 503)
}

func TestNobodyIsAskedWhileNobodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mesh := newFakeMesh(1, 3, 2)
		h := must(New(Config{Source: mesh, Authorize: func(string) bool { return true }}))
		go func() { _ = h.Run(t.Context()) }()
		asked := func(what string, after time.Duration, want int32) {
			t.Helper()
			time.Sleep(after)
			equal(t, "asked "+what, mesh.asked.Load(), want)
		}
		asked("before anybody looks", time.Minute+500*time.Millisecond, 0)
		for i := range int32(3) {
			hub := must(h.enter(""))
			asked("in ten seconds", 10*time.Second+500*time.Millisecond, 10*i+10)
			h.leave("", hub)
			asked("after the last reader left", time.Duration(i)*time.Minute, 10*i+10)
		}
	})
}

// newStream returns a stream about a fake mesh, and what refreshes it.
func newStream(t *testing.T, mesh *fakeMesh) (*stream, func()) {
	h := &hub{get: func(now time.Time) (any, bool) { return mesh.Snapshot(now), true }}
	refresh := func() {
		if err := h.refresh(time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	refresh()
	return &stream{hub: h, allowed: func() bool { return true }, over: make(chan struct{}), heartbeat: 5 * time.Second, beat: time.NewTimer(5 * time.Second)}, refresh
}

// wantEvent takes one event, and fails where it begins otherwise.
func wantEvent(t *testing.T, s *stream, begins string) {
	t.Helper()
	if event, _ := s.next(); !strings.HasPrefix(string(event), begins) {
		t.Fatalf("there comes %.40q, want %.40q", event, begins)
	}
}

func TestSlowReaderGetsTheNewestState(t *testing.T) {
	mesh := newFakeMesh(1, 20, 2)
	mesh.moving = true
	s, refresh := newStream(t, mesh)
	wantEvent(t, s, "event: snapshot\n")
	refresh()
	wantEvent(t, s, "event: delta\n")
	for range 100 {
		refresh()
	}
	wantEvent(t, s, string(s.hub.current.Load().snapshot))
	refresh()
	wantEvent(t, s, "event: delta\n")
}

func TestHeartbeatWhileNothingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, refresh := newStream(t, newFakeMesh(1, 2, 2))
		wantEvent(t, s, "event: snapshot\n")
		time.Sleep(time.Second)
		refresh() // nothing but the time is other
		begun := time.Now()
		wantEvent(t, s, ":")
		equal(t, "it comes after", time.Since(begun), 5*time.Second)
	})
}

// TestSlowConnectionIsDropped: who does not read at all is not waited for.
func TestSlowConnectionIsDropped(t *testing.T) {
	mesh := newFakeMesh(1, 400, 12)
	mesh.moving = true
	s := serveOn(t, tight{listen()}, mesh, func(p *pace) { p.interval, p.write = time.Millisecond, 50*time.Millisecond })
	conn := must(net.Dial("tcp", s.addr)).(*net.TCPConn)
	defer conn.Close()
	if err := conn.SetReadBuffer(tightBuffer); err != nil {
		t.Fatal(err)
	}
	must(io.WriteString(conn, "GET /api/v1/watch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+someToken+"\r\n\r\n"))
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
	s := serve(t, newFakeMesh(1, 2, 2), quick)
	f := s.follow("/api/v1/watch")
	f.want("snapshot")
	for begun := time.Now(); time.Since(begun) < 2*writeTimeout; {
		s.mesh.change(func(f *fakeMesh) { f.snap.Rooms[0].Waiting++ })
		f.want("delta")
	}
}

// course is how a mesh goes on: its first state, and what each next one is.
type course []Snapshot

// drawCourse draws states of which each is likely to have much in common with the one
// before: things come, go, change, lose optional fields and get them back.
func drawCourse(t *rapid.T) course {
	some := rapid.IntRange(0, 5)
	var all course
	for i := range rapid.IntRange(2, 8).Draw(t, "states") {
		s := Snapshot{Time: time.Unix(int64(i), 0).UTC(), Node: fmt.Sprint(some.Draw(t, "node") / 4), Rooms: []Room{}, Sites: []Site{}, Nodes: []Node{}, Limits: []Limit{}}
		for id := range 4 {
			if some.Draw(t, "is there") == 0 {
				continue
			}
			r := Room{ID: fmt.Sprint(id), Name: "a \"name\"", Waiting: int64(some.Draw(t, "waiting")), QueueAll: some.Draw(t, "queue all") == 0}
			if some.Draw(t, "wait known") > 2 {
				r.WaitSeconds = new(int64(some.Draw(t, "wait")))
			}
			if some.Draw(t, "event") == 0 {
				r.Event = &Event{Name: fmt.Sprint(some.Draw(t, "event name")), Start: s.Time}
			}
			for range some.Draw(t, "points") / 2 {
				r.RecentWaiting = append(r.RecentWaiting, int64(some.Draw(t, "point")))
			}
			s.Rooms = append(s.Rooms, r)
		}
		for id := range some.Draw(t, "nodes") {
			s.Nodes = append(s.Nodes, Node{Node: fmt.Sprint(id), State: "alive", RTTs: map[string]time.Duration{"x": time.Duration(some.Draw(t, "rtt"))}})
		}
		for id := range some.Draw(t, "limits") / 2 {
			s.Limits = append(s.Limits, Limit{ID: fmt.Sprint(id), Keys: OverNodes{Sum: int64(some.Draw(t, "keys"))}})
		}
		for id := range some.Draw(t, "sites") / 2 {
			s.Sites = append(s.Sites, Site{Site: fmt.Sprint("site ", id), Frozen: some.Draw(t, "frozen") == 0})
		}
		all = append(all, s)
	}
	return all
}

// events returns the snapshot of the first state, what leads from each to the next, and
// the snapshot of the last, all as they are sent.
func (c course) events() (first json.RawMessage, deltas []json.RawMessage, last json.RawMessage) {
	before := must(cut(c[0]))
	first = must(before.whole())
	for _, s := range c[1:] {
		d := must(cut(s))
		change, _ := d.since(before)
		deltas = append(deltas, must(json.Marshal(change)))
		before = d
	}
	return first, deltas, must(before.whole())
}

// asMaps decodes a document, with its lists by key.
func asMaps(b []byte) map[string]any {
	all := decode[map[string]any](b)
	for name, key := range keys {
		byKey := map[string]any{}
		items, _ := all[name].([]any)
		for _, item := range items {
			byKey[fmt.Sprint(item.(map[string]any)[key])] = item
		}
		all[name] = byKey
	}
	return all
}

// apply does with a delta what the page does.
func apply(all map[string]any, b []byte) {
	d := decode[struct {
		Fields map[string]any
		Lists  map[string]struct {
			Set  []map[string]any
			Gone []string
		}
	}](b)
	take := func(to, from map[string]any) {
		maps.Copy(to, from)
		maps.DeleteFunc(to, func(_ string, v any) bool { return v == nil })
	}
	take(all, d.Fields)
	for name, l := range d.Lists {
		list := all[name].(map[string]any)
		for _, change := range l.Set {
			id := fmt.Sprint(change[keys[name]])
			if list[id] == nil {
				list[id] = map[string]any{}
			}
			take(list[id].(map[string]any), change)
		}
		for _, id := range l.Gone {
			delete(list, id)
		}
	}
}

// TestDeltasGiveTheSnapshot: who follows knows what who comes now is told.
func TestDeltasGiveTheSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, deltas, last := drawCourse(t).events()
		all := asMaps(first)
		for _, d := range deltas {
			apply(all, d)
		}
		if want := asMaps(last); !reflect.DeepEqual(all, want) {
			t.Fatalf("deltas give\n%v\nthe snapshot is\n%v", all, want)
		}
	})
}

// TestWhatAStreamHolds: its goroutine and its connection, whether it is read or not, and no buffers. docs/operating.md has as much
// again for garbage.
func TestWhatAStreamHolds(t *testing.T) {
	s := serve(t, newFakeMesh(1, 3, 2), nil)
	held := func() int64 {
		var m runtime.MemStats
		for range 3 { // pools forget in two
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	dial := func() net.Conn {
		c := must(net.Dial("tcp", s.addr))
		must(io.WriteString(c, "GET /api/v1/watch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+someToken+"\r\n\r\n"))
		must(io.ReadFull(c, make([]byte, 1)))
		return c
	}
	defer dial().Close() // for what all of them have in common
	before, some := held(), s.pace.readers-1
	for range some {
		defer dial().Close()
	}
	if each := (held() - before) / int64(some); each > 16<<10 {
		t.Errorf("a stream holds %d bytes, want 16 KiB at most", each)
	} else {
		t.Logf("a stream holds %d bytes", each)
	}
}
