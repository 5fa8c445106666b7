package manage

import (
	"slices"
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
	b.wants("POST", "/api/v1/nodes/twins/declare_dead", `{"gone_for_good":true}`, 409, crdt.NodeID{9}.String())
	at := begin.Add(33500 * time.Millisecond)
	d := &b.mesh.down[0]
	d.State, d.UsableAt, d.Message = "recovering", &at, "recovering two's 102 of 240 capacity: usable in 34 s"
	d.Rooms = []dashboard.DownRoom{{Room: b.room, Name: "shop", Capacity: dashboard.Amount{Places: 102}, Minted: dashboard.Amount{Places: 240}}}
	told := []string{`"node":"` + old.String() + `"`, `"rooms":[{"approximate":false,"capacity":{"per_minute":0,"places":102},`,
		`"sessions":0}],"state":"recovering"`, `"usable_in_seconds":34}`}
	b.wants("POST", "/api/v1/nodes/two/declare_dead", `{"gone_for_good":true}`, 200, told...)
	b.wants("GET", "/api/v1/nodes/two/recovery", "", 200, told...)
	if !slices.Equal(b.mesh.dead, []crdt.NodeID{old}) {
		t.Errorf("declared dead: %v, want the one that is down", b.mesh.dead)
	}
	b.mesh.down = nil
	b.wants("GET", "/api/v1/nodes/"+old.String()+"/recovery", "", 200, `"state":"`+Usable+`"`, `"usable_in_seconds":0}`)
	b.mesh.unrecovered = true // nobody has recovered it yet
	b.wants("GET", "/api/v1/nodes/"+old.String()+"/recovery", "", 200, `"state":"waiting"`)
}
