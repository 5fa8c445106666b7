package metrics

import "github.com/ropeline/ropeline/node"

// roomLabels tell rooms apart. Both are from the configuration.
var roomLabels = []string{"zone", "room"}

// ofRooms returns how a number of each room is read.
func ofRooms(of func(*node.RoomStatus) float64) func(*Sample, emit) {
	return func(s *Sample, out emit) {
		for i := range s.rooms {
			out(of(&s.rooms[i]), s.rooms[i].Zone, s.rooms[i].Name)
		}
	}
}

// ofRights returns how a number of each room is read whose rights are its limit.
func ofRights(of func(*node.RightsStatus) float64) func(*Sample, emit) {
	return func(s *Sample, out emit) {
		for i := range s.rooms {
			if r := &s.rooms[i]; r.Rights != nil {
				out(of(r.Rights), r.Zone, r.Name)
			}
		}
	}
}

// amounts is ofRights of both kinds of rights.
func amounts(of func(*node.RightsStatus) node.AmountStatus) func(*Sample, emit) {
	return func(s *Sample, out emit) {
		for i := range s.rooms {
			if r := &s.rooms[i]; r.Rights != nil {
				a := of(r.Rights)
				out(float64(a.Places), r.Zone, r.Name, "places")
				out(float64(a.Rate), r.Zone, r.Name, "per_minute")
			}
		}
	}
}

// frozenSites is how many sites of a room are silent, so that what they held is kept for them.
func frozenSites(r *node.RoomStatus) (n int) {
	for i := range r.Sites {
		if r.Sites[i].Frozen {
			n++
		}
	}
	return n
}

var kindLabels = []string{"zone", "room", "kind"}

var roomTable = []Metric{
	{"ropeline_room_info", Gauge, "always 1", []string{"zone", "room", "policy", "queueing_method"}, "which settings the room goes by", func(s *Sample, out emit) {
		for i := range s.rooms {
			r := &s.rooms[i]
			out(1, r.Zone, r.Name, r.Policy, r.QueueingMethod)
		}
	}},
	{
		"ropeline_room_active_users", Gauge, "visitors", roomLabels, "visitors inside, over all sites",
		ofRooms(func(r *node.RoomStatus) float64 { return float64(r.Active) }),
	},
	{
		"ropeline_room_waiting_users", Gauge, "visitors", roomLabels, "visitors in line, over all sites",
		ofRooms(func(r *node.RoomStatus) float64 { return float64(r.Waiting) }),
	},
	{
		"ropeline_room_admitted_users", Gauge, "visitors", roomLabels, "visitors let in during the last 60 s, over all sites",
		ofRooms(func(r *node.RoomStatus) float64 { return float64(r.AdmittedPerMinute) }),
	},
	{
		"ropeline_room_slots", Gauge, "visitors", roomLabels, "how many more may be let in right now, by both limits",
		ofRooms(func(r *node.RoomStatus) float64 { return float64(r.Slots) }),
	},
	{
		"ropeline_room_active_users_limit", Gauge, "visitors", roomLabels, "total_active_users, an event's included",
		ofRooms(func(r *node.RoomStatus) float64 { return float64(r.TotalActiveUsers) }),
	},
	{
		"ropeline_room_admitted_users_limit", Gauge, "visitors", roomLabels, "new_users_per_minute, an event's included",
		ofRooms(func(r *node.RoomStatus) float64 { return float64(r.NewUsersPerMinute) }),
	},
	{
		"ropeline_room_session_duration_seconds", Gauge, "seconds", roomLabels, "how long a session goes on without a request",
		ofRooms(func(r *node.RoomStatus) float64 { return r.SessionSeconds }),
	},
	{
		"ropeline_room_frozen_sites", Gauge, "sites", roomLabels, "sites that are silent, and whose part is kept for them",
		ofRooms(func(r *node.RoomStatus) float64 { return float64(frozenSites(r)) }),
	},
	{
		"ropeline_room_suspended", Gauge, bit, roomLabels, "everybody passes, and nobody is counted",
		ofRooms(func(r *node.RoomStatus) float64 { return bitOf(r.Suspended) }),
	},
	{
		"ropeline_room_queue_all", Gauge, bit, roomLabels, "every new visitor is held",
		ofRooms(func(r *node.RoomStatus) float64 { return bitOf(r.QueueAll) }),
	},
	{
		"ropeline_room_dry_run", Gauge, bit, roomLabels, "the room only tries its limits: who would have queued passes",
		ofRooms(func(r *node.RoomStatus) float64 { return bitOf(r.DryRun) }),
	},
	{
		"ropeline_room_resting", Gauge, bit, roomLabels, "not of this node's configuration: it keeps the room's rights only",
		ofRooms(func(r *node.RoomStatus) float64 { return bitOf(r.Resting) }),
	},
	{
		"ropeline_room_event_active", Gauge, bit, roomLabels, "an event's settings hold",
		ofRooms(func(r *node.RoomStatus) float64 { return bitOf(r.Event != nil && r.Event.Active) }),
	},
	{
		"ropeline_room_bypassed_requests_total", Counter, "requests", roomLabels, "requests at this node that a rule let pass",
		ofRooms(func(r *node.RoomStatus) float64 { return float64(r.Bypassed) }),
	},
	{
		"ropeline_room_would_queue_requests_total", Counter, "requests", roomLabels, "requests at this node that would have queued, and passed in a dry run",
		ofRooms(func(r *node.RoomStatus) float64 { return float64(r.WouldQueue) }),
	},
	{
		"ropeline_room_crowded_requests_total", Counter, "requests", roomLabels, "requests of new visitors at this node who were not taken into the line because too many came",
		ofRooms(func(r *node.RoomStatus) float64 { return float64(r.Crowded) }),
	},
	{
		"ropeline_room_shared_requests_total", Counter, "requests", roomLabels, "requests at this node with a pass that more addresses used than may",
		ofRooms(func(r *node.RoomStatus) float64 { return float64(r.Shared) }),
	},
	{
		"ropeline_room_copied_requests_total", Counter, "requests", roomLabels, "requests at this node with a waiting pass that was redeemed before",
		ofRooms(func(r *node.RoomStatus) float64 { return float64(r.Copies) }),
	},
	{
		"ropeline_room_tickets_total", Counter, "tickets", roomLabels, "tickets that this node gave",
		ofRooms(func(r *node.RoomStatus) float64 { return float64(r.Tickets) }),
	},
	{
		"ropeline_room_tickets_refused_total", Counter, "tickets", roomLabels,
		"tickets that this node did not give though a place was free: because of its store, its clock or a counter that did not answer",
		ofRooms(func(r *node.RoomStatus) float64 { return float64(r.TicketsRefused) }),
	},
	{
		"ropeline_room_rights_minted", Gauge, "rights", kindLabels, "rights made by all nodes: places, or per_minute; above the limit while a lower one is being followed",
		amounts(func(r *node.RightsStatus) node.AmountStatus { return r.Minted }),
	},
	{"ropeline_room_rights_held", Gauge, "rights", kindLabels, "rights of this node, in use or not", amounts(func(r *node.RightsStatus) node.AmountStatus { return r.Held })},
	{"ropeline_room_rights_free", Gauge, "rights", kindLabels, "rights of this node that can be used now", amounts(func(r *node.RightsStatus) node.AmountStatus { return r.Free })},
	{"ropeline_room_rights_used", Gauge, "rights", roomLabels, "places of this node that sessions use", ofRights(func(r *node.RightsStatus) float64 { return float64(r.InUse) })},
	{"ropeline_room_rights_lent", Gauge, "rights", roomLabels, "places lent to the site's counter and not known to be used", ofRights(func(r *node.RightsStatus) float64 { return float64(r.Lent) })},
	{"ropeline_room_rights_stock", Gauge, "rights", roomLabels, "places lent to this node and not used", ofRights(func(r *node.RightsStatus) float64 { return float64(r.InStock) })},
	{"ropeline_room_rights_borrowed", Gauge, "sessions", roomLabels, "sessions that go on at this node without a right", ofRights(func(r *node.RightsStatus) float64 { return float64(r.Borrowed) })},
	{"ropeline_room_rights_alone", Gauge, bit, roomLabels, "the site's counter does not answer, and this node uses its own rights", ofRights(func(r *node.RightsStatus) float64 { return bitOf(r.Alone) })},
	{"ropeline_room_rights_minter_known", Gauge, bit, roomLabels, "this node knows a node that makes the room's rights", ofRights(func(r *node.RightsStatus) float64 { return bitOf(r.Minter != "") })},
	{
		"ropeline_room_capacity_unusable", Gauge, "rights",
		[]string{"zone", "room", "kind", "down_node", "down_site", "state"},
		"capacity of a node that does not run: down; waiting, until all have confirmed that it is dead; or recovering, while another node cannot use it yet",
		func(s *Sample, out emit) {
			zones := make(map[string]string, len(s.Node.Rooms))
			for i := range s.Node.Rooms {
				zones[s.Node.Rooms[i].ID] = s.Node.Rooms[i].Zone
			}
			for _, d := range s.Node.Down {
				for _, r := range d.Rooms {
					out(float64(r.Capacity.Places), zones[r.Room], r.Name, "places", d.Order, d.Site, d.State)
					out(float64(r.Capacity.Rate), zones[r.Room], r.Name, "per_minute", d.Order, d.Site, d.State)
				}
			}
		},
	},
}
