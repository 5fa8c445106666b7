package metrics

import "github.com/ropeline/ropeline/node"

// roomLabels tell rooms apart. Both are from the configuration.
var roomLabels = []string{"zone", "room"}

// ofRooms is a number of each room.
func ofRooms(name string, t Type, unit, help string, of func(*node.RoomStatus) float64) Metric {
	return Metric{name, t, unit, roomLabels, help, func(s *Sample, out emit) {
		for i := range s.rooms {
			out(of(&s.rooms[i]), s.rooms[i].Zone, s.rooms[i].Name)
		}
	}}
}

// roomIs is ofRooms of what is so or is not.
func roomIs(name, help string, of func(*node.RoomStatus) bool) Metric {
	return ofRooms(name, Gauge, bit, help, func(r *node.RoomStatus) float64 { return bitOf(of(r)) })
}

// ofRights is a number of each room whose rights are its limit.
func ofRights(name string, t Type, unit, help string, of func(*node.RightsStatus) float64) Metric {
	return Metric{name, t, unit, roomLabels, help, func(s *Sample, out emit) {
		for i := range s.rooms {
			if r := &s.rooms[i]; r.Rights != nil {
				out(of(r.Rights), r.Zone, r.Name)
			}
		}
	}}
}

// rightsAre is ofRights of what is so or is not.
func rightsAre(name, help string, of func(*node.RightsStatus) bool) Metric {
	return ofRights(name, Gauge, bit, help, func(r *node.RightsStatus) float64 { return bitOf(of(r)) })
}

// amounts is ofRights of both kinds of rights.
func amounts(name, help string, of func(*node.RightsStatus) node.AmountStatus) Metric {
	return Metric{name, Gauge, "rights", []string{"zone", "room", "kind"}, help, func(s *Sample, out emit) {
		for i := range s.rooms {
			if r := &s.rooms[i]; r.Rights != nil {
				a := of(r.Rights)
				out(float64(a.Places), r.Zone, r.Name, "places")
				out(float64(a.Rate), r.Zone, r.Name, "per_minute")
			}
		}
	}}
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

var roomTable = []Metric{
	{"ropeline_room_info", Gauge, "always 1", []string{"zone", "room", "policy", "queueing_method"}, "which settings the room goes by", func(s *Sample, out emit) {
		for i := range s.rooms {
			r := &s.rooms[i]
			out(1, r.Zone, r.Name, r.Policy, r.QueueingMethod)
		}
	}},
	ofRooms("ropeline_room_active_users", Gauge, "visitors", "visitors inside, over all sites",
		func(r *node.RoomStatus) float64 { return float64(r.Active) }),
	ofRooms("ropeline_room_waiting_users", Gauge, "visitors", "visitors in line, over all sites",
		func(r *node.RoomStatus) float64 { return float64(r.Waiting) }),
	ofRooms("ropeline_room_admitted_users", Gauge, "visitors", "visitors let in during the last 60 s, over all sites",
		func(r *node.RoomStatus) float64 { return float64(r.AdmittedPerMinute) }),
	ofRooms("ropeline_room_slots", Gauge, "visitors", "how many more may be let in right now, by both limits",
		func(r *node.RoomStatus) float64 { return float64(r.Slots) }),
	ofRooms("ropeline_room_active_users_limit", Gauge, "visitors", "total_active_users, an event's included",
		func(r *node.RoomStatus) float64 { return float64(r.TotalActiveUsers) }),
	ofRooms("ropeline_room_admitted_users_limit", Gauge, "visitors", "new_users_per_minute, an event's included",
		func(r *node.RoomStatus) float64 { return float64(r.NewUsersPerMinute) }),
	ofRooms("ropeline_room_session_duration_seconds", Gauge, "seconds", "how long a session goes on without a request",
		func(r *node.RoomStatus) float64 { return r.SessionSeconds }),
	ofRooms("ropeline_room_frozen_sites", Gauge, "sites", "sites that are silent, and whose part is kept for them",
		func(r *node.RoomStatus) float64 { return float64(frozenSites(r)) }),
	roomIs("ropeline_room_suspended", "everybody passes, and nobody is counted", func(r *node.RoomStatus) bool { return r.Suspended }),
	roomIs("ropeline_room_queue_all", "every new visitor is held", func(r *node.RoomStatus) bool { return r.QueueAll }),
	roomIs("ropeline_room_dry_run", "the room only tries its limits: who would have queued passes", func(r *node.RoomStatus) bool { return r.DryRun }),
	roomIs("ropeline_room_resting", "not of this node's configuration: it keeps the room's rights only",
		func(r *node.RoomStatus) bool { return r.Resting }),
	roomIs("ropeline_room_event_active", "an event's settings hold", func(r *node.RoomStatus) bool { return r.Event != nil && r.Event.Active }),
	ofRooms("ropeline_room_bypassed_requests_total", Counter, "requests", "requests at this node that a rule let pass",
		func(r *node.RoomStatus) float64 { return float64(r.Bypassed) }),
	ofRooms("ropeline_room_would_queue_requests_total", Counter, "requests", "requests at this node that would have queued, and passed in a dry run",
		func(r *node.RoomStatus) float64 { return float64(r.WouldQueue) }),
	ofRooms("ropeline_room_crowded_requests_total", Counter, "requests", "requests of new visitors at this node who were not taken into the line because too many came",
		func(r *node.RoomStatus) float64 { return float64(r.Crowded) }),
	ofRooms("ropeline_room_shared_requests_total", Counter, "requests", "requests at this node with a pass that more addresses used than may",
		func(r *node.RoomStatus) float64 { return float64(r.Shared) }),
	ofRooms("ropeline_room_copied_requests_total", Counter, "requests", "requests at this node with a waiting pass that was redeemed before",
		func(r *node.RoomStatus) float64 { return float64(r.Copies) }),
	ofRooms("ropeline_room_tickets_total", Counter, "tickets", "tickets that this node gave",
		func(r *node.RoomStatus) float64 { return float64(r.Tickets) }),
	ofRooms("ropeline_room_tickets_refused_total", Counter, "tickets", "tickets that this node did not give though a place was free: because of its store, its clock or a counter that did not answer",
		func(r *node.RoomStatus) float64 { return float64(r.TicketsRefused) }),
	amounts("ropeline_room_rights_minted", "rights made by all nodes: places, or per_minute; above the limit while a lower one is being followed",
		func(r *node.RightsStatus) node.AmountStatus { return r.Minted }),
	amounts("ropeline_room_rights_held", "rights of this node, in use or not", func(r *node.RightsStatus) node.AmountStatus { return r.Held }),
	amounts("ropeline_room_rights_free", "rights of this node that can be used now", func(r *node.RightsStatus) node.AmountStatus { return r.Free }),
	ofRights("ropeline_room_rights_used", Gauge, "rights", "places of this node that sessions use",
		func(r *node.RightsStatus) float64 { return float64(r.InUse) }),
	ofRights("ropeline_room_rights_lent", Gauge, "rights", "places lent to the site's counter and not known to be used",
		func(r *node.RightsStatus) float64 { return float64(r.Lent) }),
	ofRights("ropeline_room_rights_stock", Gauge, "rights", "places lent to this node and not used",
		func(r *node.RightsStatus) float64 { return float64(r.InStock) }),
	ofRights("ropeline_room_rights_borrowed", Gauge, "sessions", "sessions that go on at this node without a right",
		func(r *node.RightsStatus) float64 { return float64(r.Borrowed) }),
	rightsAre("ropeline_room_rights_alone", "the site's counter does not answer, and this node uses its own rights",
		func(r *node.RightsStatus) bool { return r.Alone }),
	rightsAre("ropeline_room_rights_minter_known", "this node knows a node that makes the room's rights",
		func(r *node.RightsStatus) bool { return r.Minter != "" }),
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
