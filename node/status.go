package node

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// Status is a node's view of itself, of its rooms and of the mesh.
type Status struct {
	Node    string       `json:"node"` // id
	Name    string       `json:"name"`
	Site    string       `json:"site"`
	Boot    uint64       `json:"boot"`
	Version string       `json:"version"`
	Mesh    string       `json:"mesh"` // id of the mesh that the node is of; "": of none yet
	Ready   bool         `json:"ready"`
	Reason  string       `json:"reason,omitempty"` // why not ready
	Rooms   []RoomStatus `json:"rooms"`
	Peers   []PeerStatus `json:"peers"`

	Store string `json:"store"` // "ok", or why this node gives no tickets
	Clock string `json:"clock"` // "ok", or "off": this node gives no tickets, and takes no changes

	Leaving bool `json:"leaving"` // it passes its rights on, and then ends

	// Bootstrap says that no bootstrap node is in the mesh any more, or is going to be once
	// this one has left, and what to do. "": there is one.
	Bootstrap string `json:"bootstrap,omitempty"`

	// RoomsRefused is what operators have set and cannot hold beside the rest of it.
	RoomsRefused []RefusedStatus `json:"rooms_refused"`

	// Down are the nodes whose capacity cannot be used, as far as the nodes that run know.
	Down []DownStatus `json:"down"`

	Facts FactsStatus `json:"facts"`

	Limits LimitsStatus `json:"limits"`

	// What went wrong since the start. All zero is as it should be.
	MessagesRefused uint64 `json:"messages_refused"` // made no sense, or were not the sender's to say
	MessagesDropped uint64 `json:"messages_dropped"` // came faster than they could be taken in; sent again or repaired
	HistoryBytes    uint64 `json:"history_bytes"`    // of memory, for what happened in rooms during a day
	HistoryRefused  uint64 `json:"history_refused"`  // observations of rooms for which there was no place in it
	StoreFailures   uint64 `json:"store_failures"`   // how often the disk did not take a write, or was full; each time stops tickets here until it does again
	Overflow        uint64 `json:"overflow"`         // polls, check-ins and ends of sessions lost because a table was full
}

// FactsStatus says how many facts this node knows of rooms and nodes, of how many beside which
// there is room for what is new. Those that were deleted count until all nodes know that: see forgetting.go.
type FactsStatus struct {
	Known   int    `json:"known"`
	Most    int    `json:"most"`
	Refused uint64 `json:"refused"` // that this node had to tell and there was no room for
}

// RefusedStatus is a room that is not run, or a part of one.
type RefusedStatus struct {
	Room   string `json:"room,omitempty"` // id
	Name   string `json:"name,omitempty"`
	Event  string `json:"event,omitempty"` // by name; "": it is about the room
	Limit  string `json:"limit,omitempty"` // the name of a rate limit; then it is about no room
	Reason string `json:"reason"`
}

// RoomStatus is one room as this node sees it, over the whole mesh. Settings are
// those that hold at the moment, an event's included.
type RoomStatus struct {
	ID                string `json:"id"`
	Name              string `json:"name"`
	Zone              string `json:"zone,omitempty"` // none: it is not in the catalog
	Policy            string `json:"policy"`
	QueueingMethod    string `json:"queueing_method"`
	Active            int64  `json:"active"`
	Waiting           int64  `json:"waiting"`
	AdmittedPerMinute int64  `json:"admitted_per_minute"`
	TotalActiveUsers  int    `json:"total_active_users"`
	NewUsersPerMinute int    `json:"new_users_per_minute"`
	Slots             int    `json:"slots"`

	Bypassed uint64 `json:"bypassed"` // requests at this node that a rule let pass the room, since the start

	WouldQueue uint64 `json:"would_queue"` // requests at this node that would have queued, and passed in a dry run, since the start

	Crowded uint64 `json:"crowded"` // requests of new visitors at this node who were not taken into the line because too many came, since the start

	Shared uint64 `json:"shared"` // requests at this node with a pass of somebody on the site that more addresses used than may, since the start

	Copies uint64 `json:"copies"` // requests at this node with a pass that waited of which its owner had to say that it was redeemed, since the start

	Tickets        uint64 `json:"tickets"`         // that visitors of this node got, since the start
	TicketsRefused uint64 `json:"tickets_refused"` // that they did not get though places were free, because of the disk, the clock or a counter that did not answer

	// Rights is left out where they are not the limit.
	Rights *RightsStatus `json:"rights,omitempty"`

	Anywhere int          `json:"anywhere"` // places that no site has a claim to, under the policy counter
	Sites    []SiteStatus `json:"sites"`

	// Who hands out tickets, as far as this node knows: ids of nodes, under the
	// policy counter only.
	SiteCounter     string `json:"site_counter,omitempty"`     // for this node's site
	AnywhereCounter string `json:"anywhere_counter,omitempty"` // for what no site has a claim to

	SessionSeconds        float64      `json:"session_duration_seconds"`
	DisableSessionRenewal bool         `json:"disable_session_renewal"`
	QueueAll              bool         `json:"queue_all"`
	DryRun                bool         `json:"dry_run"`
	Suspended             bool         `json:"suspended"`
	Resting               bool         `json:"resting,omitempty"` // not of this node's configuration: it keeps the room's rights, and takes no requests
	Event                 *EventStatus `json:"event,omitempty"`   // none is near: left out
}

// RightsStatus is what this node knows and has of a room's rights. Never more
// visitors are inside than are minted, those with borrowed sessions aside.
type RightsStatus struct {
	Minted     AmountStatus `json:"minted"` // by all nodes; above the limit while a lower one is being followed
	Minter     string       `json:"minter"` // the node that makes them; "" if none does
	MintedHere AmountStatus `json:"minted_here"`
	Held       AmountStatus `json:"held"` // by this node, in use or not
	Free       AmountStatus `json:"free"` // of those, usable now
	InUse      int64        `json:"in_use"`
	Lent       int64        `json:"lent"`     // to the site's counter, and not known to be used
	InStock    int64        `json:"in_stock"` // lent to this node, and not used
	Borrowed   int64        `json:"borrowed"` // sessions that go on here without a right
	Alone      bool         `json:"alone"`    // the site's counter does not answer: this node uses its own rights
	Retired    bool         `json:"retired"`  // the room is gone for good

	// MintsFrom is until when this node, which makes the rights, makes none: visitors of a room
	// that was deleted, or of a node that is lost, still count. Zero: it makes them at once.
	MintsFrom time.Time `json:"mints_from,omitzero"`
}

// AmountStatus is a number of rights of each kind.
type AmountStatus struct {
	Places int64 `json:"places"`
	Rate   int64 `json:"per_minute"`
}

func amountStatus(a ticket.Amount) AmountStatus { return AmountStatus{a.Places, a.Rate} }

// EventStatus is an event that is under way, or whose pre-queue is.
type EventStatus struct {
	Name          string     `json:"name"`
	Active        bool       `json:"active"`      // its settings hold
	Prequeueing   bool       `json:"prequeueing"` // new visitors wait for the start
	Shuffle       bool       `json:"shuffle_at_event_start"`
	PrequeueStart *time.Time `json:"prequeue_start_time,omitempty"` // without a pre-queue: left out
	Start         time.Time  `json:"event_start_time"`
	End           time.Time  `json:"event_end_time"`
}

// SiteStatus is one site's part of a room.
type SiteStatus struct {
	Site    string `json:"site"`
	Active  int64  `json:"active"`
	Waiting int64  `json:"waiting"`
	Frozen  bool   `json:"frozen"` // silent: what it held is kept for it, and its counts are the last known
}

// PeerStatus is one other node as this node sees it.
type PeerStatus struct {
	Node        string        `json:"node"`
	Name        string        `json:"name"`
	Site        string        `json:"site"`
	Boot        uint64        `json:"boot"`
	State       string        `json:"state"` // alive, failed or left
	RTT         time.Duration `json:"rtt_ns"`
	ClockOffset time.Duration `json:"clock_offset_ns"`

	Refused *PeerRefusalStatus `json:"refused,omitempty"` // what this node refused of the peer; nothing in the last ten minutes: left out
	Refuses *PeerRefusalStatus `json:"refuses,omitempty"` // what the peer refused of this node, as it says
}

// Status returns what the node sees now. Any goroutine may call it.
func (n *Node) Status() Status {
	self := n.core.self
	s := Status{
		Node: self.Node.String(), Name: n.cfg.Name, Site: n.cfg.Site, Boot: self.Boot,
		Version: n.cfg.Version, Ready: n.serves.Load(),
		Rooms: []RoomStatus{}, Peers: []PeerStatus{}, Down: []DownStatus{},
		MessagesRefused: n.core.refusals.total.Load(), MessagesDropped: n.dropped.Load(), Overflow: n.core.overflow.Load(),
		StoreFailures: n.journal.failures.Load(),
		HistoryBytes:  n.core.past.bytes.Load(), HistoryRefused: n.core.past.refused.Load(),
	}
	if err := n.Ready(); err != nil {
		s.Reason = err.Error()
	}
	if id := n.Mesh(); !id.IsZero() {
		s.Mesh = id.String()
	}
	s.Store, s.Clock, s.Leaving = n.core.health.store.String(), "ok", n.core.health.leaving.Load()
	s.Bootstrap = n.BootstrapWarning(s.Leaving)
	if !n.core.health.clockOK.Load() {
		s.Clock = "off"
	}
	s.Facts = FactsStatus{Known: int(n.core.factsKnown.Load()), Most: crdt.MaxKeys, Refused: n.core.factsFull.Load()}
	known := n.Catalog()
	for _, r := range *n.core.shown.Load() {
		st := r.status()
		if known != nil {
			if set := known.Room(r.id); set != nil {
				st.Zone = set.Zone
			}
		}
		s.Rooms = append(s.Rooms, st)
	}
	s.RoomsRefused = n.core.refusedStatus()
	s.Limits = n.limitsStatus()
	if m := n.mesh.Load(); m != nil {
		s.Peers = n.peerStatus(*m)
	}
	return s
}

func (c *Core) refusedStatus() []RefusedStatus {
	all := []RefusedStatus{}
	if c.catalog == nil || c.catalog.refused.Load() == nil {
		return all
	}
	for _, x := range *c.catalog.refused.Load() {
		all = append(all, refusedStatus(&x))
	}
	return all
}

func refusedStatus(x *catalog.Refusal) RefusedStatus {
	if x.Limit != "" {
		return RefusedStatus{Limit: x.Limit, Reason: x.Why.Error()}
	}
	return RefusedStatus{Room: x.Room.String(), Name: x.Name, Event: x.Event, Reason: x.Why.Error()}
}

func (r *Room) status() RoomStatus {
	v := r.view.Load()
	s, t := v.View.Settings, r.tallied()
	st := RoomStatus{
		ID: s.ID.String(), Name: s.Name,
		Policy: string(s.Policy), QueueingMethod: string(s.QueueingMethod),
		Active: int64(v.Active), Waiting: int64(v.Waiting), AdmittedPerMinute: int64(v.AdmittedLast60s),
		TotalActiveUsers: s.TotalActiveUsers, NewUsersPerMinute: s.NewUsersPerMinute,
		Slots: v.Slots, Bypassed: t.bypassed.Load(), WouldQueue: t.dryRun.Load(), Crowded: t.crowded.Load(), Shared: t.shared.Load(), Copies: t.copies.Load(),
		Tickets: t.given.Load(), TicketsRefused: t.refused.Load(), Anywhere: v.AllowAnywhere, Sites: []SiteStatus{},
		SessionSeconds: s.SessionDuration.Seconds(), DisableSessionRenewal: s.DisableSessionRenewal,
		QueueAll: s.QueueAll, DryRun: s.DryRun, Suspended: s.Suspended, Resting: r.resting.Load(), Event: eventStatus(v.Event),
		SiteCounter: nameOf(v.ask[ticket.SiteCounter]), AnywhereCounter: nameOf(v.ask[ticket.AnywhereCounter]),
	}
	if s.Policy == room.Escrow {
		st.Rights = r.rightsStatus()
	}
	for _, site := range v.Sites {
		st.Sites = append(st.Sites, SiteStatus{Site: site.Name, Active: int64(site.Active), Waiting: int64(site.Waiting), Frozen: site.Frozen})
	}
	return st
}

func (r *Room) rightsStatus() *RightsStatus {
	is := r.Rights()
	return &RightsStatus{
		Minted: amountStatus(is.MintedByAll), Minter: nameOf(is.Minter), MintedHere: amountStatus(is.Minted),
		Held: amountStatus(is.Held), Free: amountStatus(is.Free), InUse: is.InUse, Lent: is.Lent, InStock: is.InStock,
		Borrowed: is.Borrowed, Alone: is.Alone, Retired: is.Retired, MintsFrom: is.MintsFrom,
	}
}

// nameOf returns "" for nobody.
func nameOf(id crdt.NodeID) string {
	if id == (crdt.NodeID{}) {
		return ""
	}
	return id.String()
}

// eventStatus returns nil if no event is near.
func eventStatus(e room.EventState) *EventStatus {
	if !e.Active && !e.Prequeueing {
		return nil
	}
	st := &EventStatus{
		Name: e.Name, Active: e.Active, Prequeueing: e.Prequeueing, Shuffle: e.Shuffle,
		Start: e.Start.UTC(), End: e.End.UTC(),
	}
	if !e.PrequeueStart.IsZero() {
		st.PrequeueStart = new(e.PrequeueStart.UTC())
	}
	return st
}

func (n *Node) peerStatus(m Mesh) []PeerStatus {
	peers := []PeerStatus{}
	for _, p := range m.Members() {
		rtt, _ := m.RTT(p.ID)
		offset, _ := m.Offset(p.ID)
		here, there := n.core.refusals.status(crdt.NodeID(p.ID))
		peers = append(peers, PeerStatus{
			Node: p.ID.String(), Name: p.Name, Site: p.Site, Boot: p.Boot,
			State: p.State.String(), RTT: rtt, ClockOffset: offset, Refused: here, Refuses: there,
		})
	}
	return peers
}
