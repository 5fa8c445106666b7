package manage

import (
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
)

// TestARecoveryIsTold from the declaration on, and of several nodes of one name it is the one that is down.
func TestARecoveryIsTold(t *testing.T) {
	b := newBench(t)
	old := crdt.NodeID{7}
	b.mesh.down = []dashboard.Down{
		{Node: old.String(), Name: "two", State: "down", Rooms: []dashboard.DownRoom{}, Message: "two is down"},
		{Node: crdt.NodeID{8}.String(), Name: "twins", State: "down", Rooms: []dashboard.DownRoom{}},
		{Node: crdt.NodeID{9}.String(), Name: "twins", State: "down", Rooms: []dashboard.DownRoom{}},
	}
	if code, got := b.ask("POST", "/api/v1/nodes/twins/declare_dead", `{"gone_for_good":true}`); code != 409 || !strings.Contains(got["errors"].([]any)[0].(map[string]any)["message"].(string), crdt.NodeID{9}.String()) {
		t.Errorf("two nodes that are down have the name: %d %v", code, got)
	}
	at := begin.Add(33500 * time.Millisecond)
	b.mesh.down[0].State, b.mesh.down[0].UsableAt, b.mesh.down[0].Message = "recovering", &at, "recovering two's 102 of 240 capacity: usable in 34 s"
	b.mesh.down[0].Rooms = []dashboard.DownRoom{{Room: b.room, Name: "shop", Capacity: dashboard.Amount{Places: 102}, Minted: dashboard.Amount{Places: 240}}}
	for _, ask := range [][3]string{{"POST", "declare_dead", `{"gone_for_good":true}`}, {"GET", "recovery", ""}} {
		code, got := b.ask(ask[0], "/api/v1/nodes/two/"+ask[1], ask[2])
		rooms, _ := got["rooms"].([]any)
		if code != 200 || got["node"] != old.String() || got["state"] != "recovering" || got["usable_in_seconds"] != 34.0 || len(rooms) != 1 ||
			rooms[0].(map[string]any)["capacity"].(map[string]any)["places"] != 102.0 {
			t.Errorf("%s: %d %v", ask[1], code, got)
		}
	}
	if len(b.mesh.dead) != 1 || b.mesh.dead[0] != old {
		t.Errorf("declared dead: %v, want the one that is down", b.mesh.dead)
	}
	b.mesh.down = nil
	if _, got := b.ask("GET", "/api/v1/nodes/"+old.String()+"/recovery", ""); got["state"] != Usable || got["usable_in_seconds"] != 0.0 {
		t.Errorf("once it is over: %v", got)
	}
	b.mesh.unrecovered = true
	if _, got := b.ask("GET", "/api/v1/nodes/"+old.String()+"/recovery", ""); got["state"] != "waiting" {
		t.Errorf("before anybody has recovered it: %v", got)
	}
}
