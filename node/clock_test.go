package node

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/transport"
)

// clockMesh has peers whose clocks are ahead of this node's by what a test says.
type clockMesh struct {
	alone
	now      atomic.Pointer[[]time.Duration]
	starting map[int]bool // which of them are not ready
}

func (m *clockMesh) set(offsets ...time.Duration) { m.now.Store(&offsets) }

func (m *clockMesh) offsets() []time.Duration {
	if p := m.now.Load(); p != nil {
		return *p
	}
	return nil
}

func (m *clockMesh) Members() (peers []transport.Peer) {
	for i := range m.offsets() {
		peers = append(peers, transport.Peer{ID: transport.PeerID{byte(i)}, Boot: 1, Site: "a", State: transport.Alive, Ready: !m.starting[i]})
	}
	return peers
}

func (m *clockMesh) Offset(id transport.PeerID) (time.Duration, bool) {
	return m.offsets()[id[0]], true
}

func TestMiddleOfOffsets(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		offsets []time.Duration
		want    time.Duration
	}{
		{nil, 0},
		{[]time.Duration{s}, s},                 // nobody knows which of two is right
		{[]time.Duration{s, 0}, 0},              // the third is off
		{[]time.Duration{-s, -s}, -s},           // this one is
		{[]time.Duration{s, 0, s, 0}, 0},        // three of five agree, this one among them
		{[]time.Duration{s, 0, s, s}, s},        // it does not
		{[]time.Duration{3 * s, s, -2 * s}, s},  // three clocks, three times
		{[]time.Duration{-2 * s, s, -s, s}, -s}, // nearer to zero, whichever the sign; ties to the lower
		{[]time.Duration{-2 * s, s, -2 * s, s}, s},
	} {
		if got := middle(c.offsets); got != c.want {
			t.Errorf("middle of %v = %v, want %v", c.offsets, got, c.want)
		}
	}
}

func TestClockWatchStopsAndGoesOn(t *testing.T) {
	mesh := &clockMesh{}
	var w clockWatch
	var logs syncBuffer
	now := time.Unix(1_700_000_000, 0)
	look := func(offset time.Duration) (right, news bool) {
		mesh.set(offset, offset, offset)
		now = now.Add(clockInterval)
		was := !w.off
		is, _ := w.look(mesh, mesh.Members(), true, now, slog.New(slog.NewTextHandler(&logs, nil)))
		return is.right, is.right != was
	}
	for i, step := range []struct {
		offset      time.Duration
		right, news bool
	}{
		{0, true, false},
		{400 * time.Millisecond, true, false},
		{-401 * time.Millisecond, false, true},
		{-2 * time.Second, false, false},
		{-350 * time.Millisecond, false, false}, // at the edge it does not come and go
		{-300 * time.Millisecond, true, true},
		{450 * time.Millisecond, false, true},
	} {
		if right, news := look(step.offset); right != step.right || news != step.news {
			t.Errorf("step %d, %v off: right %v, news %v; want %v, %v", i, step.offset, right, news, step.right, step.news)
		}
	}
	if warned := logs.count("level=WARN"); warned != 6 {
		t.Errorf("the log warns of clocks of peers %d times, want once for each of 3 peers and time", warned)
	}
	if logs.count("level=ERROR") != 2 || logs.count("level=INFO") != 4 {
		t.Errorf("logged %d errors and %d lines of good news, want 2 and 1", logs.count("level=ERROR"), logs.count("level=INFO"))
	}
}

// TestWhoStartsDoesNotStopWhoServes: a node that comes with a clock that is off stops nobody; a majority does.
func TestWhoStartsDoesNotStopWhoServes(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		served   bool
		offsets  []time.Duration
		starting map[int]bool
		right    bool
	}{
		{true, []time.Duration{10 * s}, map[int]bool{0: true}, true},
		{false, []time.Duration{-10 * s}, nil, false},
		{true, []time.Duration{10 * s}, nil, false},                             // two that serve: either may be wrong
		{false, []time.Duration{10 * s}, map[int]bool{0: true}, false},          // two that start
		{true, []time.Duration{0, 10 * s, 10 * s}, map[int]bool{1: true}, true}, // half and half, of which one only starts
		{true, []time.Duration{s, s}, map[int]bool{0: true, 1: true}, false},    // two of three say so
		{true, []time.Duration{s, s, 0}, map[int]bool{0: true, 1: true}, true},  // two of four
		{false, []time.Duration{-s, -s, 0}, map[int]bool{2: true}, false},       // with another one that starts the same way
	} {
		mesh, w := &clockMesh{starting: c.starting}, clockWatch{}
		mesh.set(c.offsets...)
		if is, _ := w.look(mesh, mesh.Members(), c.served, noon, slog.New(slog.DiscardHandler)); is.right != c.right {
			t.Errorf("served %v, peers ahead by %v, of which %v start: right is %v", c.served, c.offsets, c.starting, is.right)
		}
	}
}

// TestWhoIsOutvoted: a clock is known to be wrong only if more than half of all nodes agree on another time.
func TestWhoIsOutvoted(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		offsets       []time.Duration
		off, outvoted bool
	}{
		{[]time.Duration{10 * s}, true, false},
		{[]time.Duration{10 * s, 10*s + 300*time.Millisecond}, true, true},
		{[]time.Duration{10 * s, 12 * s}, true, false}, // three clocks, three times
		{[]time.Duration{10 * s, 0, 0}, false, false},
		{[]time.Duration{10 * s, 10 * s, 0}, true, false}, // half of all
		{[]time.Duration{10 * s, 10 * s, 12 * s}, true, false},
		{[]time.Duration{10 * s, 10 * s, 10 * s, 0}, true, true},
	} {
		mesh, w := &clockMesh{}, clockWatch{}
		mesh.set(c.offsets...)
		is, _ := w.look(mesh, mesh.Members(), true, noon, slog.New(slog.DiscardHandler))
		if is.right == c.off || is.outvoted != c.outvoted {
			t.Errorf("peers ahead by %v: right is %v, outvoted %v", c.offsets, is.right, is.outvoted)
		}
		err := clockOff{is}.Error()
		if c.outvoted != strings.Contains(err, "most of which agree: set it") {
			t.Errorf("peers ahead by %v: %s", c.offsets, err)
		}
	}
}

// TestNodeDoesNotOpenWithAClockThatIsOff: it says why, and opens when its clock agrees.
func TestNodeDoesNotOpenWithAClockThatIsOff(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		mesh := &clockMesh{}
		mesh.set(-10*time.Minute, -10*time.Minute)
		n, stop := startNode(t, dir, 0, mesh)
		time.Sleep(20 * time.Second)
		err := n.Ready()
		if err == nil || !strings.Contains(err.Error(), "10m0s ahead") {
			t.Errorf("ready: %v, want that the clock is ahead", err)
		}
		if is := n.Status(); is.Ready || is.Clock != "off" || is.Reason != err.Error() {
			t.Errorf("status: ready %v, clock %q, reason %q", is.Ready, is.Clock, is.Reason)
		}
		mesh.set(0, 0)
		time.Sleep(20 * time.Second)
		if err, is := n.Ready(), n.Status(); is.Clock != "ok" || err != nil && strings.Contains(err.Error(), "clock") {
			t.Errorf("once clocks agree: clock %q, ready: %v", is.Clock, err)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestNodeStopsWithAClockThatIsOff looks at a node, from outside: within two seconds
// it gives nothing.
func TestNodeStopsWithAClockThatIsOff(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		mesh := &clockMesh{}
		n, stop := startNode(t, dir, 0, mesh)
		time.Sleep(time.Second)
		if !n.core.health.clockOK.Load() {
			t.Fatal("a clock without peers is off")
		}
		mesh.set(time.Second, 900*time.Millisecond)
		time.Sleep(2 * time.Second)
		if n.core.health.clockOK.Load() {
			t.Error("a clock that is off by a second was not noticed for two")
		}
		if n.NoTickets() == nil || n.Outvoted() == nil || n.Ready() != nil {
			t.Errorf("a node that serves: tickets: %v, outvoted: %v, ready: %v", n.NoTickets(), n.Outvoted(), n.Ready())
		}
		mesh.set(0, 0)
		time.Sleep(2 * time.Second)
		if n.NoTickets() != nil || n.Outvoted() != nil {
			t.Errorf("its clock is right: tickets: %v, outvoted: %v", n.NoTickets(), n.Outvoted())
		}
		if !n.core.health.clockOK.Load() {
			t.Error("a clock that is right again was not noticed for two seconds")
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestNodeLivesByTheClockOfItsStart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		data, err := OpenDataDir(dir, crdt.NodeID{})
		if err != nil {
			t.Fatal(err)
		}
		ahead := time.Hour
		n, err := New(Config{
			Data: data, Site: "a", OwnerKey: []byte("key"),
			Clock: func() time.Time { return time.Now().Add(ahead) },
		})
		if err != nil {
			t.Fatal(err)
		}
		ahead = -time.Hour // the wall clock is set while the node runs
		time.Sleep(10 * time.Second)
		if got := n.Now().Sub(time.Now().Round(0)); got != time.Hour {
			t.Errorf("the node's clock is ahead by %v, want what it was at the start", got)
		}
		if err := n.journal.store.Close(); err != nil {
			t.Fatal(err)
		}
		if err := data.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
