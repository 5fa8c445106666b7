package overview

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
	"github.com/ropeline/ropeline/transport"
)

var shop = crdt.RoomID{7}

// fakeNode is one node as a test has it.
type fakeNode struct {
	mu     sync.Mutex // guards the following
	status node.Status
	view   *room.View
	set    *catalog.Catalog
	down   []node.Down
	looks  int // for nodes that are down
}

// change changes what the node says.
func (n *fakeNode) change(how func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	how()
}

func (n *fakeNode) Down() []node.Down {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.looks++
	return n.down
}

func (n *fakeNode) Status() node.Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.status
}

func (n *fakeNode) Catalog() *catalog.Catalog { return n.set }

func (n *fakeNode) View(id crdt.RoomID) *room.View {
	if id != shop {
		return nil
	}
	return n.view
}

// newNode returns a node of a site that owns so many places of the shop.
func newNode(id byte, site string, places int64) *fakeNode {
	self := crdt.NodeID{id}.String()
	s := room.Settings{ID: shop, Name: "shop", Host: "shop.example", TotalActiveUsers: 100, NewUsersPerMinute: 60, Policy: room.Escrow}.WithDefaults()
	return &fakeNode{
		status: node.Status{
			Node: self, Name: "node " + self[:2], Site: site, Boot: 3, Version: "1", Ready: true, Store: "ok", Clock: "ok",
			Rooms: []node.RoomStatus{{
				ID: shop.String(), Name: "shop", Zone: "default", Policy: "escrow", QueueingMethod: "fifo", Active: 40, Waiting: 9, AdmittedPerMinute: 12,
				TotalActiveUsers: 100, NewUsersPerMinute: 60, SiteCounter: self,
				Rights: &node.RightsStatus{
					Minted: node.AmountStatus{Places: 100, Rate: 60}, Minter: crdt.NodeID{1}.String(),
					Held: node.AmountStatus{Places: places, Rate: 20}, Free: node.AmountStatus{Places: places - 5, Rate: 4}, InUse: 5, Borrowed: 1,
				},
				Sites: []node.SiteStatus{{Site: "a"}, {Site: "b", Frozen: true}},
			}},
		},
		view: &room.View{
			BuiltAt: time.Unix(1000, 0), Settings: &s, Cursor: time.Unix(600, 0), AdmittedMinute: 3,
			Buckets: []room.Bucket{{Start: 540, Waiting: 4}, {Start: 600, Waiting: 0}, {Start: 660, Waiting: 5}},
			Sites:   []room.SitePlaces{{Name: "a", Active: 30, Waiting: 9}, {Name: "b", Active: 10, Frozen: true}},
		},
	}
}

// fakePeers are other nodes, by id.
type fakePeers struct {
	nodes  map[transport.PeerID]*fakeNode
	called atomic.Int32

	mu    sync.Mutex // guards the following
	state map[transport.PeerID]transport.State
}

func (p *fakePeers) Members() (all []transport.Peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, n := range p.nodes {
		all = append(all, transport.Peer{ID: id, Site: n.status.Site, State: cmp.Or(p.state[id], transport.Alive)})
	}
	return all
}

func (p *fakePeers) Call(_ context.Context, to transport.PeerID, method uint8, _ []byte) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.called.Add(1)
	if method != 9 {
		return nil, errors.New("another call")
	}
	if p.state[to] == transport.Failed {
		return nil, errors.New("no answer")
	}
	return New(Config{Local: p.nodes[to], Address: "192.0.2.2:7946"}).Answer()
}

// newMesh is a node that sees another one in another site.
func newMesh() (*Overview, *fakeNode, *fakePeers) {
	here, there := newNode(1, "a", 60), newNode(2, "b", 40)
	here.status.Peers = []node.PeerStatus{{Node: there.status.Node, Name: there.status.Name, Site: "b", Boot: 3, State: "alive", RTT: 20 * time.Millisecond, ClockOffset: time.Millisecond}}
	there.status.Peers = []node.PeerStatus{{Node: here.status.Node, State: "alive", RTT: 21 * time.Millisecond}}
	peers := &fakePeers{nodes: map[transport.PeerID]*fakeNode{{2}: there}, state: map[transport.PeerID]transport.State{}}
	return New(Config{Local: here, Peers: peers, Method: 9, Address: "192.0.2.1:7946"}), here, peers
}

// TestWhatIsSeenOfAMesh has others be asked once somebody looks, who waits for that.
func TestWhatIsSeenOfAMesh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, here, peers := newMesh()
		here.status.RoomsRefused = []node.RefusedStatus{{Room: shop.String(), Name: "shop", Event: "sale", Reason: "another one takes the time"}}
		must.Run(t, o.Run)
		time.Sleep(time.Minute)
		synctest.Wait() // for the figure that is due by now
		is(t, "calls while nobody looks", peers.called.Load(), int32(0))
		s := o.Snapshot(time.Now())
		if len(s.Rooms) != 1 || len(s.Nodes) != 2 || len(s.Sites) != 2 || s.Node != here.status.Node {
			t.Fatalf("seen: %+v", s)
		}
		is(t, "left out", s.Refused, []dashboard.Refused{{Room: shop.String(), Name: "shop", Event: "sale", Reason: "another one takes the time"}})
		want := dashboard.Room{
			ID: shop.String(), Name: "shop", Zone: "default", Routes: []dashboard.Route{{Host: "shop.example", Path: "/"}},
			Policy: "escrow", QueueingMethod: "fifo", Active: 40, Waiting: 9, AdmittedPerMinute: 12, TotalActiveUsers: 100, NewUsersPerMinute: 60,
			WaitSeconds: new(int64(180)), // nine are before it, at three in a minute
			Rights: &dashboard.Rights{
				Minted: dashboard.Amount{Places: 100, Rate: 60}, Minter: crdt.NodeID{1}.String(),
				Held: dashboard.Amount{Places: 100, Rate: 40}, Free: dashboard.Amount{Places: 90, Rate: 8}, InUse: 10, Borrowed: 2,
			},
		}
		got := s.Rooms[0]
		if len(got.RecentActive) != 7 || got.RecentActive[6] != 40 || got.RecentWaiting[0] != 9 {
			t.Errorf("the last minute: %v and %v, want seven figures", got.RecentActive, got.RecentWaiting)
		}
		got.RecentActive, got.RecentWaiting = nil, nil
		is(t, "the room", got, want)
		other := s.Nodes[1]
		if other.Address != "192.0.2.2:7946" || !other.Ready || other.RTTs[here.status.Node] != 21*time.Millisecond || len(other.Leads) != 1 ||
			other.Rights.Held.Places != 40 || other.ClockOffset != time.Millisecond || other.Version != "1" {
			t.Errorf("the other node: %+v", other)
		}
		if s.Sites[0].Frozen || !s.Sites[1].Frozen || s.Sites[1].Silent != nil {
			t.Errorf("sites: %+v", s.Sites)
		}
		asked := peers.called.Load()
		time.Sleep(time.Minute)
		if n := peers.called.Load() - asked; n > 8 {
			t.Errorf("%d calls in the minute after somebody has looked", n)
		}
	})
}

// TestANodeThatFails is shown as it was last, and its site as silent since then.
func TestANodeThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, here, peers := newMesh()
		must.Run(t, o.Run)
		o.Snapshot(time.Now())
		peers.mu.Lock()
		peers.state[transport.PeerID{2}] = transport.Failed
		peers.mu.Unlock()
		here.change(func() { here.status.Peers[0].State = "failed" })
		at := time.Now()
		for range 3 {
			o.Snapshot(time.Now())
			time.Sleep(2 * time.Second)
		}
		s := o.Snapshot(time.Now())
		if n := s.Nodes[1]; n.State != "failed" || n.Ready || n.Rights.Held.Places != 40 || len(n.RTTs) != 0 {
			t.Errorf("a node that failed: %+v", n)
		}
		since := s.Sites[1].Silent
		if since == nil || since.Before(at) || since.After(at.Add(2*time.Second)) {
			t.Errorf("its site is silent since %v, want %v", since, at)
		}
		d, ok := o.Room(shop.String(), time.Now())
		if !ok || d.Sites[1].Counter != "" || d.Sites[1].Rights.Held.Places != 0 {
			t.Errorf("its site has %+v; it is not known what", d.Sites)
		}
	})
}

// TestReportsFollowStateAndBoot: what a node said of itself counts for as long as the node that said it runs, though nobody
// has asked since.
func TestReportsFollowStateAndBoot(t *testing.T) {
	for name, happens := range map[string]func(p *node.PeerStatus){
		"it has left":      func(p *node.PeerStatus) { p.State = "left" },
		"it runs again":    func(p *node.PeerStatus) { p.Boot++ },
		"it does not run":  func(p *node.PeerStatus) { p.State = "failed" },
		"nothing happened": func(*node.PeerStatus) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, here, _ := newMesh()
				must.Run(t, o.Run)
				o.Snapshot(time.Now())
				time.Sleep(time.Minute) // and nobody looks
				here.change(func() { happens(&here.status.Peers[0]) })
				status := here.Status()
				o.looked.Store(time.Now().UnixNano()) // so that nobody is asked
				s := o.Snapshot(time.Now())
				p := &status.Peers[0]
				inUse, held := int64(5), int64(0)
				if name == "nothing happened" {
					inUse = 10
				}
				if p.Boot == 3 && p.State != "left" {
					held = 40
				}
				is(t, "in use", s.Rooms[0].Rights.InUse, inUse)
				is(t, "held by the node", s.Nodes[1].Rights.Held.Places, held)
			})
		})
	}
}

// TestASilentNode does not hold up who looks, and is not said to be in trouble.
func TestASilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _, peers := newMesh()
		peers.state[transport.PeerID{2}] = transport.Failed // as far as calls go
		began := time.Now()
		s := o.Snapshot(began) // and nobody runs it
		if took := time.Since(began); took > lookWait {
			t.Errorf("who looks waits for %v", took)
		}
		if n := s.Nodes[1]; n.State != "alive" || !n.Ready || n.Store != "ok" || n.Clock != "ok" || n.Version != "" || n.Limits != nil {
			t.Errorf("a node that has said nothing yet: %+v", n)
		}
	})
}

func TestARoomInDetail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, here, _ := newMesh()
		must.Run(t, o.Run)
		here.view.Settings.Events = []room.Event{{Name: "sale", Start: time.Unix(2000, 0), End: time.Unix(3000, 0), PrequeueStart: time.Unix(1000, 0), TotalActiveUsers: new(10), NewUsersPerMinute: new(10)}}
		here.view.Event = room.EventState{Name: "sale", Prequeueing: true, Start: time.Unix(2000, 0)}
		o.Snapshot(time.Now())
		now := time.Now()
		d, ok := o.Room(shop.String(), now)
		if !ok {
			t.Fatal("there is no room")
		}
		want := dashboard.Detail{
			ID: shop.String(), Time: now, Settings: dashboard.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 60}, SessionSeconds: d.SessionSeconds,
			Buckets: []dashboard.Bucket{{Arrived: time.Unix(540, 0).UTC(), Seconds: 60, Waiting: 4}, {Arrived: time.Unix(660, 0).UTC(), Seconds: 60, Waiting: 5}},
			Cursor:  new(time.Unix(600, 0).UTC()),
			Sites: []dashboard.SiteShare{
				{Site: "a", Active: 30, Waiting: 9, Counter: here.status.Node, Rights: &dashboard.Rights{Held: dashboard.Amount{Places: 60, Rate: 20}, Free: dashboard.Amount{Places: 55, Rate: 4}, InUse: 5, Borrowed: 1}},
				{Site: "b", Active: 10, Frozen: true, Counter: crdt.NodeID{2}.String(), Rights: &dashboard.Rights{Held: dashboard.Amount{Places: 40, Rate: 20}, Free: dashboard.Amount{Places: 35, Rate: 4}, InUse: 5, Borrowed: 1}},
			},
			Events: []dashboard.Event{{Name: "sale", Prequeueing: true, PrequeueStart: new(time.Unix(1000, 0).UTC()), Start: time.Unix(2000, 0).UTC(), End: time.Unix(3000, 0).UTC(), TotalActiveUsers: 10, NewUsersPerMinute: 10}},
		}
		is(t, "the room", d, want)
		for _, id := range []string{"", "x", crdt.RoomID{8}.String()} {
			if _, ok := o.Room(id, now); ok {
				t.Errorf("there is a room %q", id)
			}
		}
	})
}

// TestHowLongAReportMayBe: a node tells of itself though five others are down that had rights in a thousand rooms, and
// believes nobody who tells of much more.
func TestHowLongAReportMayBe(t *testing.T) {
	r := &Report{Node: dashboard.Node{RTTs: map[string]time.Duration{}}}
	for i := range 5 {
		down := node.Down{Node: crdt.NodeID{byte(i)}, Since: time.Unix(1_800_000_000, 0).UTC()}
		for j := range 1000 {
			sum := sha256.Sum256([]byte{byte(j), byte(j >> 8)})
			id := crdt.RoomID(sum[:16])
			much := ticket.Amount{Places: int64(1000 * j), Rate: int64(j * j)}
			down.Rooms = append(down.Rooms, node.DownRoom{Room: id, Name: fmt.Sprint("room", j), Minted: much, Papers: much, Dealt: much, Held: much, HeldKnown: true, Sessions: int64(j)})
		}
		r.Down = append(r.Down, down)
	}
	b := must.Do(r.Encode())
	if len(b) > transport.MaxCall {
		t.Errorf("a report has %d bytes, and an answer %d at most", len(b), transport.MaxCall)
	}
	is(t, "it is read", must.Do(DecodeReport(b)), r)
	for what, text := range map[string]string{
		"objects":       `{"Rooms":[` + strings.Repeat("{},", maxObjects) + `{}]}`,
		"text of more":  strings.Repeat(" ", maxReport) + "{}",
		"invalid chara": "<html>",
	} {
		if _, err := DecodeReport(catalog.Pack(text)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// FuzzReport reads what other nodes may send.
func FuzzReport(f *testing.F) {
	s := newNode(1, "a", 60).Status()
	f.Add(must.Do(ReportOf(&s, "192.0.2.1:7946").Encode()))
	f.Add([]byte("\x00{}"))
	f.Add([]byte("\x00null"))
	f.Add(catalog.Pack(`{"Rooms":[` + strings.Repeat("{},", 1<<16) + `{}]}`))
	f.Add([]byte("\x00" + `{"Rooms":[{},{},{},{}],"rtts_ns":{"":1},"Down":[{"Rooms":[{"WaitsFor":[[1],[]]}]}],"Origins":[{}]}`))
	f.Add([]byte{0, 0x81, 0xa5, 'R', 'o', 'o', 'm', 's', 0xdd, 0x7a, 0x4d, 2, 'h'}) // msgpack that says it is long
	f.Fuzz(func(t *testing.T, b []byte) {
		text, err := catalog.Unpack(b, maxReport)
		most := uint64(400*len(text) + 1<<17)
		if err != nil {
			most = 6 * maxReport
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := DecodeReport(b)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > most {
			t.Errorf("a report of %d bytes, unpacked %d, takes %d", len(b), len(text), n)
		}
		if err != nil {
			return
		}
		b = must.Do(r.Encode())
		if _, err := catalog.Unpack(b, maxReport); err != nil {
			return // fields that were left out are written, and make it longer
		}
		is(t, "read again", must.Do(must.Do(DecodeReport(b)).Encode()), b) // empty lists that are left out are nil then
	})
}

// is fails where two values differ.
func is(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got\n%+v, want\n%+v", what, got, want)
	}
}

// TestNodesComeInOneOrder whichever of them is asked.
func TestNodesComeInOneOrder(t *testing.T) {
	s := &seen{self: &Report{Node: dashboard.Node{Node: "1", Name: "b1", Site: "b"}}, status: &node.Status{Node: "1", Peers: []node.PeerStatus{
		{Node: "4", Name: "a2", Site: "a"}, {Node: "3", Name: "a1", Site: "a"}, {Node: "2", Name: "a1", Site: "a"},
	}}}
	order := ""
	for _, n := range s.nodes() {
		order += n.Node
	}
	is(t, "by site, name and id", order, "2341")
}

// TestOthersAreAskedWhileANodeIsDown though nobody looks, and what they say adds up.
func TestOthersAreAskedWhileANodeIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, here, peers := newMesh()
		there := peers.nodes[transport.PeerID{2}]
		gone := crdt.NodeID{3}
		must.Run(t, o.Run)
		time.Sleep(time.Minute)
		is(t, "calls while all run and nobody looks", peers.called.Load(), int32(0))
		here.change(func() {
			is(t, "looks for nodes that are down, in a minute", here.looks <= int(time.Minute/downAsk), true)
		})
		for n, places := range map[*fakeNode]int64{here: 140, there: -38} {
			rooms := []node.DownRoom{{Room: shop, Name: "shop", Minted: ticket.Amount{Places: 240}, Dealt: ticket.Amount{Places: places}}}
			n.change(func() { n.down = []node.Down{{Node: gone, Name: "b2", Site: "b", Rooms: rooms}} })
		}
		wants := func(when, message string) {
			t.Helper()
			s := here.Status()
			if all := o.Down(&s, time.Now()); len(all) != 1 || !strings.HasPrefix(all[0].Message, message) {
				t.Errorf("%s: down are %+v, want %q", when, all, message)
			}
		}
		wants("before the other has said", "b2 is down: about 140 of 240 capacity unusable;")
		time.Sleep(2 * downAsk)
		wants("after it has", "b2 is down: 102 of 240 capacity unusable;")
		if d := o.Snapshot(time.Now()).Down; len(d) != 1 || d[0].Rooms[0].Capacity.Places != 102 || d[0].Order != "b2" {
			t.Errorf("the snapshot has %+v", d)
		}
		time.Sleep(10 * time.Minute) // nobody looks, and nothing changes
		before := peers.called.Load()
		time.Sleep(5 * downLater)
		if n := peers.called.Load() - before; n < 4 || n > 6 {
			t.Errorf("%d calls in %v", n, 5*downLater)
		}
	})
}
