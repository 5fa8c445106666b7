package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// fakeRoom is a waiting room as simple as can be: one process, one lock, exact
// first come first served. Its faults are switches, so that each figure of a
// report can be seen to catch the fault that it is there for.
type fakeRoom struct {
	limit   int
	session time.Duration
	pause   int // seconds between polls
	html    bool

	lifo    bool // lets the last one in first
	forgets bool // sends everybody back to the queue after 3 pages
	moves   bool // tells a later arrival at every poll

	mu     sync.Mutex // guards the following
	guests map[string]*guest
	queue  []string
	most   int // active at one time
	asked  []string
}

type guest struct {
	arrived  time.Time
	lastPoll time.Time
	until    time.Time // end of the session; zero: not let in
	pages    int
}

func newFakeRoom(limit int, session time.Duration) *fakeRoom {
	return &fakeRoom{limit: limit, session: session, pause: 1, guests: make(map[string]*guest)}
}

func (f *fakeRoom) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	id := ""
	if c, err := r.Cookie("ropeline"); err == nil {
		id = c.Value
	}
	g := f.guests[id]
	if g == nil {
		id = fmt.Sprintf("guest%d", len(f.guests))
		g = &guest{arrived: now}
		f.guests[id] = g
		http.SetCookie(w, &http.Cookie{Name: "ropeline", Value: id, Path: "/", MaxAge: 3600})
	}
	f.asked = append(f.asked, id+" "+r.URL.RequestURI())
	if f.decideLocked(id, g, now) {
		_, _ = io.WriteString(w, "welcome")
		return
	}
	f.writeQueueLocked(w, g, now)
}

// decideLocked reports whether the guest may pass.
func (f *fakeRoom) decideLocked(id string, g *guest, now time.Time) bool {
	if f.forgets && g.pages == 3 {
		g.until, g.pages = time.Time{}, 0
	}
	if now.Before(g.until) {
		g.until = now.Add(f.session)
		g.pages++
		return true
	}
	g.lastPoll = now
	f.queue = slices.DeleteFunc(f.queue, func(id string) bool {
		return now.Sub(f.guests[id].lastPoll) > 5*time.Duration(f.pause)*time.Second/2
	})
	if !slices.Contains(f.queue, id) {
		f.queue = append(f.queue, id)
	}
	active := 0
	for _, other := range f.guests {
		if now.Before(other.until) {
			active++
		}
	}
	at := slices.Index(f.queue, id)
	rank := at
	if f.lifo {
		rank = len(f.queue) - 1 - at
	}
	if rank >= f.limit-active {
		return false
	}
	f.queue = slices.Delete(f.queue, at, at+1)
	g.until, g.pages = now.Add(f.session), 1
	f.most = max(f.most, active+1)
	return true
}

func (f *fakeRoom) writeQueueLocked(w http.ResponseWriter, g *guest, now time.Time) {
	w.Header().Set("Refresh", fmt.Sprint(f.pause))
	// A HEAD request is told by nothing else.
	w.Header().Set("Ropeline-State", "waiting")
	if f.html {
		_, _ = io.WriteString(w, "<!doctype html><title>please wait</title>")
		return
	}
	arrival := g.arrived
	if f.moves {
		arrival = now
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(map[string]any{"cfWaitingRoom": map[string]any{
		"inWaitingRoom": true, "refreshIntervalSeconds": f.pause,
		"arrival": arrival.UTC().Format("2006-01-02T15:04:05.000Z07:00"),
	}})
}

// memoryNet is a network inside a synctest bubble: connections are pipes, so
// that a whole run takes virtual time only.
type memoryNet struct {
	mu        sync.Mutex // guards the following
	listeners map[string]*memoryListener
}

type memoryListener struct {
	address string
	accept  chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func newMemoryNet() *memoryNet { return &memoryNet{listeners: make(map[string]*memoryListener)} }

func (n *memoryNet) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	refused := fmt.Errorf("dial %s: connection refused", address)
	if l == nil {
		return nil, refused
	}
	ours, theirs := net.Pipe()
	select {
	case l.accept <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *memoryNet) listen(address string) *memoryListener {
	l := &memoryListener{address: address, accept: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[address] = l
	return l
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return memoryAddr(l.address) }

type memoryAddr string

func (a memoryAddr) Network() string { return "memory" }
func (a memoryAddr) String() string  { return string(a) }

// serve answers at address until the function that it returns is called, which
// breaks every connection, as a killed process would.
func (n *memoryNet) serve(t testing.TB, address string, h http.Handler) (kill func()) {
	t.Helper()
	server := &http.Server{Handler: h}
	l := n.listen(address)
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) })
	return func() {
		_ = server.Close()
		wg.Wait()
	}
}
