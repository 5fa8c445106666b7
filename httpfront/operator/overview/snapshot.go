package overview

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

// seen is all that a snapshot is made of.
type seen struct {
	status  *node.Status
	self    *Report                      // what this node says of itself
	set     *catalog.Catalog             // nil: there is none
	view    func(crdt.RoomID) *room.View // nil: there is no such room
	reports map[string]*Report           // of other nodes, by id; the last that came
	silent  map[string]time.Time         // sites of which nothing is heard, and since when
	recent  map[string]recently          // by the id of the room
}

// snapshot puts the mesh together.
func (s *seen) snapshot(now time.Time) dashboard.Snapshot {
	all := dashboard.Snapshot{Time: now, Node: s.status.Node, Rooms: []dashboard.Room{}, Sites: []dashboard.Site{}, Nodes: s.nodes(), Limits: s.limits(), Refused: append([]dashboard.Refused{}, s.status.RoomsRefused...)}
	rights := s.rights()
	frozen := map[string]bool{}
	for i := range s.status.Rooms {
		st := &s.status.Rooms[i]
		for _, site := range st.Sites {
			frozen[site.Site] = frozen[site.Site] || site.Frozen
		}
		if !st.Resting {
			all.Rooms = append(all.Rooms, s.room(st, rights[st.ID]))
		}
	}
	known := map[string]bool{}
	for i := range all.Nodes {
		name := all.Nodes[i].Site
		if known[name] {
			continue
		}
		known[name] = true
		site := dashboard.Site{Site: name, Frozen: frozen[name]}
		if at, ok := s.silent[name]; ok {
			site.Silent = &at
		}
		all.Sites = append(all.Sites, site)
	}
	return all
}

// nodes returns this node and all others that have not left and been forgotten, by site and name:
// whichever node is asked, they come in the same order.
func (s *seen) nodes() []dashboard.Node {
	nodes := []dashboard.Node{s.self.Node}
	for _, p := range s.status.Peers {
		// Nothing is wrong with a node that has only not said anything yet.
		n := dashboard.Node{Boot: p.Boot, Ready: true, Store: "ok", Clock: "ok"}
		if r := s.report(&p); r != nil {
			n = r.Node
		}
		n.Node, n.Name, n.Site, n.State, n.ClockOffset = p.Node, p.Name, p.Site, p.State, p.ClockOffset
		if n.State != "alive" {
			n.Ready, n.Reason, n.RTTs = false, "", nil
		}
		if n.RTTs == nil {
			n.RTTs = map[string]time.Duration{}
		}
		n.Leads = append([]string{}, n.Leads...)
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b dashboard.Node) int {
		return cmp.Or(strings.Compare(a.Site, b.Site), strings.Compare(a.Name, b.Name), strings.Compare(a.Node, b.Node))
	})
	return nodes
}

// rights returns what the nodes that are alive have of each room, as far as they have said.
func (s *seen) rights() map[string]dashboard.Rights {
	all := map[string]dashboard.Rights{}
	for _, r := range s.alive() {
		for i := range r.Rooms {
			id := r.Rooms[i].Room.String()
			sum := all[id]
			add(&sum, &r.Rooms[i].Rights)
			all[id] = sum
		}
	}
	return all
}

// report returns what another node has said of itself since its last start; nil: nothing. What a node that has left
// had is another one's, which tells of it.
func (s *seen) report(p *node.PeerStatus) *Report {
	if r := s.reports[p.Node]; r != nil && r.Boot == p.Boot && p.State != "left" {
		return r
	}
	return nil
}

func add(sum, more *dashboard.Rights) {
	sum.Held.Places += more.Held.Places
	sum.Held.Rate += more.Held.Rate
	sum.Free.Places += more.Free.Places
	sum.Free.Rate += more.Free.Rate
	sum.InUse += more.InUse
	sum.Borrowed += more.Borrowed
}

func (s *seen) room(st *node.RoomStatus, of dashboard.Rights) dashboard.Room {
	r := dashboard.Room{
		ID: st.ID, Name: st.Name, Zone: st.Zone, Routes: []dashboard.Route{},
		Policy: st.Policy, QueueingMethod: st.QueueingMethod, QueueAll: st.QueueAll, Suspended: st.Suspended, DryRun: st.DryRun,
		Active: st.Active, Waiting: st.Waiting, AdmittedPerMinute: st.AdmittedPerMinute,
		TotalActiveUsers: int64(st.TotalActiveUsers), NewUsersPerMinute: int64(st.NewUsersPerMinute),
	}
	if e := st.Event; e != nil {
		r.Event = &dashboard.Event{
			Name: e.Name, Active: e.Active, Prequeueing: e.Prequeueing, Shuffle: e.Shuffle,
			PrequeueStart: e.PrequeueStart, Start: e.Start, End: e.End,
		}
	}
	if own := st.Rights; own != nil {
		of.Minted, of.Minter = own.Minted, own.Minter
		r.Rights = &of
	}
	id, err := crdt.ParseRoomID(st.ID)
	if err != nil {
		return r
	}
	if v := s.view(id); v != nil {
		for route := range v.Settings.Routes() {
			r.Routes = append(r.Routes, dashboard.Route{Host: route.Host, Path: route.Prefix() + "/"})
		}
		if wait, known := v.WaitOfNew(v.BuiltAt); known {
			r.WaitSeconds = new(int64(wait / time.Second))
		}
	}
	r.RecentActive, r.RecentWaiting = s.recent[st.ID].active, s.recent[st.ID].waiting
	return r
}
