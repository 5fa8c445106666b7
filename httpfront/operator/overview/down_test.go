package overview

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/ticket"
	"github.com/ropeline/ropeline/transport"
)

// TestOthersAreAskedWhileANodeIsDown though nobody looks, and what they say adds up.
func TestOthersAreAskedWhileANodeIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, here, peers := newMesh()
		there := peers.nodes[transport.PeerID{2}]
		gone := crdt.NodeID{3}
		run(t, o)
		time.Sleep(time.Minute)
		is(t, "calls while all run and nobody looks", peers.called(), 0)
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
		before := peers.called()
		time.Sleep(5 * downLater)
		if n := peers.called() - before; n < 4 || n > 6 {
			t.Errorf("%d calls in %v", n, 5*downLater)
		}
	})
}
