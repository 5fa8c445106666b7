package overview

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/transport"
)

// setLimits returns a catalog with these rules, and their ids.
func setLimits(rules ...limit.Rule) (*catalog.Catalog, []string) {
	var m crdt.LWW
	all := catalog.FileLimits(rules, time.Unix(0, 0))
	for i, w := range new(catalog.Catalog).LimitWrites(nil, all) {
		if err := m.Set(w.Key, w.Value, crdt.Stamp{Wall: int64(i + 1)}); err != nil {
			panic(err)
		}
	}
	var ids []string
	for _, l := range all {
		ids = append(ids, l.ID.String())
	}
	return catalog.Read(&m), ids
}

// counting returns what a node tells of a rule that it counts for.
func counting(id, name string, keys, limited int, delay float64, most int) node.LimitStatus {
	return node.LimitStatus{ID: id, Name: name, Scope: "mesh", Keys: keys, Limited: limited, Bound: node.LimitBound{DelaySeconds: delay, Nodes: 2, Most: most}}
}

// TestLimitsOverTheMesh: what is set, and of all nodes that are alive what they count.
func TestLimitsOverTheMesh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, here, peers := newMesh()
		set, ids := setLimits(
			limit.Rule{Name: "off", Expression: "true", Period: time.Hour, RequestsPerPeriod: 7, Disabled: true, Scope: limit.Site}.WithDefaults(),
			limit.Rule{
				Name: "logins", Expression: `http.request.uri.path eq "/login"`, Characteristics: []string{"ip.src"}, Period: time.Minute,
				RequestsPerPeriod: 5, MitigationTimeout: 10 * time.Minute, Action: limit.Queue,
			}.WithDefaults(),
			limit.Rule{Name: "twice", Expression: "true", Period: time.Second, RequestsPerPeriod: 1}.WithDefaults(),
		)
		unset := limit.ID{9}.String()
		here.set = set
		here.status.Limits = node.LimitsStatus{MemoryBytes: 1 << 20, Keys: 900, Rules: []node.LimitStatus{
			counting(ids[1], "logins", 30, 2, 1.25, 5), counting(unset, "of the file", 4, 0, 0.5, 9),
		}}
		there := peers.nodes[transport.PeerID{2}]
		there.status.Limits = node.LimitsStatus{MemoryBytes: 2 << 20, Keys: 1800, Replaced: 11, Rules: []node.LimitStatus{
			counting(ids[1], "logins", 50, 1, 0.5, 5), counting(limit.ID{10}.String(), "not known here", 1, 1, 1, 1),
		}}
		must.Run(t, o.Run)
		s := o.Snapshot(time.Now())
		want := []dashboard.Limit{
			{ID: ids[0], Name: "off", Order: 1, State: dashboard.LimitDisabled, Scope: "site", Expression: "true", Period: 3600, RequestsPerPeriod: 7, Action: "block"},
			{
				ID: ids[1], Name: "logins", Order: 2, State: dashboard.LimitCounts, Scope: "mesh", Expression: `http.request.uri.path eq "/login"`,
				Characteristics: []string{"ip.src"}, Period: 60, RequestsPerPeriod: 5, MitigationTimeout: 600, Action: "queue",
				Keys: dashboard.OverNodes{Most: 50, Sum: 80}, Limited: dashboard.OverNodes{Most: 2, Sum: 3}, DelaySeconds: 1.25, Most: 5, Nodes: 2,
			},
			{ID: ids[2], Name: "twice", Order: 3, State: dashboard.LimitLeftOut, Scope: "mesh", Expression: "true", Period: 1, RequestsPerPeriod: 1, Action: "block"},
			{ID: unset, Name: "of the file", Order: 4, State: dashboard.LimitCounts, Scope: "mesh", Keys: dashboard.OverNodes{Most: 4, Sum: 4}, DelaySeconds: 0.5, Most: 9, Nodes: 1},
		}
		is(t, "limits", s.Limits, want)
		is(t, "memory here", *s.Nodes[0].Limits, dashboard.LimitMemory{Bytes: 1 << 20, Room: 900, Keys: 34})
		is(t, "memory there", *s.Nodes[1].Limits, dashboard.LimitMemory{Bytes: 2 << 20, Room: 1800, Keys: 51, Replaced: 11})

		here.change(func() { here.status.Peers[0].State = "failed" })
		if l := o.Snapshot(time.Now()).Limits[1]; l.Nodes != 1 || l.Keys.Sum != 30 || l.Limited.Most != 2 {
			t.Errorf("without the node that failed: %+v", l)
		}
	})
}

// TestKeysForgottenLately are those of the last five minutes, at whichever node.
func TestKeysForgottenLately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, here, _ := newMesh()
		here.status.Limits = node.LimitsStatus{MemoryBytes: 1 << 20, Replaced: 40}
		must.Run(t, o.Run)
		lately := func(when string, want uint64) {
			t.Helper()
			told := must.Do(DecodeReport(must.Do(o.Answer()))).Limits // as others hear it
			own := o.Snapshot(time.Now()).Nodes[0].Limits
			if told.ReplacedLately != want || own.ReplacedLately != want || own.Replaced != told.Replaced {
				t.Errorf("%s it shows %+v and tells others %+v, want %d", when, own, told, want)
			}
		}
		synctest.Wait()
		lately("before anybody looked", 0)
		here.change(func() { here.status.Limits.Replaced = 45 })
		lately("at once", 5)
		time.Sleep(4 * time.Minute)
		lately("after four minutes", 5)
		time.Sleep(time.Minute + time.Second)
		lately("after more than five minutes", 0)
		here.change(func() { here.status.Limits.Replaced = 0 })
		lately("where all rules were deleted, and there is a new one", 0)
	})
}
