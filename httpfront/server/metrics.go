package server

import (
	"bytes"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/observe/metrics"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/transport"
)

// measures is what Prometheus is told of a process.
type measures struct {
	*metrics.Metrics
	of *Server

	named atomic.Bool                     // rooms have series
	as    atomic.Pointer[catalog.Catalog] // those of this catalog; nil: the file's
	mu    sync.Mutex                      // held while rooms get series
}

var _ httpfront.RequestCounter = (*measures)(nil)

// newMeasures returns what is measured of a process once its parts are in of.
func newMeasures(of *Server) (_ *measures, err error) {
	m := &measures{of: of}
	m.Metrics, err = metrics.New(metrics.Config{Sample: m.sample})
	return m, err
}

// outcomes are those of requests, as metrics has them.
var outcomes = [...]metrics.Outcome{
	httpfront.Unavailable: metrics.Unavailable,
	httpfront.Admitted:    metrics.Admitted,
	httpfront.Queued:      metrics.Queued,
	httpfront.Malformed:   metrics.Malformed,
	httpfront.Limited:     metrics.Limited,
	httpfront.Rejected:    metrics.Rejected,
	httpfront.Bypassed:    metrics.Bypassed,
	httpfront.Failed:      metrics.Failed,
}

// Record implements httpfront.RequestCounter.
func (m *measures) Record(of crdt.RoomID, o httpfront.Outcome, took time.Duration) {
	if !m.named.Load() || m.as.Load() != m.of.node.Catalog() {
		m.name() // before the first request of a room is counted
	}
	m.Requests().Record(of, outcomes[o], took)
}

// name has the rooms that there are have series.
func (m *measures) name() {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of.node.Catalog()
	if m.named.Load() && m.as.Load() == known {
		return
	}
	var all []metrics.NamedRoom
	if known != nil {
		for r := range known.Rooms() {
			all = append(all, metrics.NamedRoom{ID: r.Settings.ID, RoomName: metrics.RoomName{Zone: r.Zone, Room: r.Settings.Name}})
		}
	}
	// In the order of Status, so that where there are too many the same ones have all series.
	slices.SortFunc(all, func(a, b metrics.NamedRoom) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	m.Requests().SetRooms(all)
	m.as.Store(known)
	m.named.Store(true)
}

// measuredDisk tells of the file system that a store lies on. What cannot be read is 0.
func measuredDisk(store string) (d metrics.Disk) {
	if info, err := os.Stat(store); err == nil {
		d.StoreBytes = uint64(info.Size())
	}
	if free, size, err := (durable.Files{}).Free(store); err == nil {
		d.FreeBytes, d.SizeBytes = uint64(free), uint64(size)
	}
	return d
}

// sample reads all figures.
func (m *measures) sample() metrics.Sample {
	m.name()
	a := m.of
	status := a.lame().Status()
	s := metrics.Sample{
		Node:  measuredNode(&status),
		Mesh:  measuredMesh(status.Peers, a.mesh),
		Disk:  measuredDisk(a.dir.StorePath()),
		Rooms: make([]metrics.Room, len(status.Rooms)),
	}
	for i := range status.Rooms {
		s.Rooms[i] = measuredRoom(&status.Rooms[i])
	}
	s.Down = measuredDown(a.seen.Down(&status, a.node.Now()), status.Rooms)
	s.Limits = measuredLimits(&status.Limits, a.front.LimitTallies())
	s.Front.Connections, s.Front.RequestsInFlight = a.front.Load()
	for _, g := range a.front.Origins() {
		for i := range g.Origins {
			s.Origins = append(s.Origins, measuredOrigin(g.Name, &g.Origins[i]))
		}
	}
	if a.access != nil {
		is := a.access.Stats()
		s.Front.AccessLines, s.Front.AccessDropped, s.Front.AccessErrors = is.Lines, is.Dropped, is.Errors
	}
	if dropped := a.cfg.LogDropped; dropped != nil {
		s.Node.LogDropped = dropped()
	}
	for _, c := range a.visitors.status() {
		of := metrics.Certificate{NotAfter: c.NotAfter, OK: c.Error == ""}
		if len(c.Names) > 0 {
			of.Name = c.Names[0]
		}
		s.Certificates = append(s.Certificates, of)
	}
	return s
}

func measuredNode(s *node.Status) metrics.Node {
	return metrics.Node{
		ID: s.Node, Name: s.Name, Site: s.Site, Version: s.Version,
		Ready: s.Ready, Leaving: s.Leaving, StoreOK: s.Store == "ok", ClockOK: s.Clock == "ok", Boot: s.Boot,
		Facts: s.Facts.Known, FactsMost: s.Facts.Most, FactsRefused: s.Facts.Refused, SettingsLeftOut: len(s.RoomsRefused),
		MessagesRefused: s.MessagesRefused, MessagesDropped: s.MessagesDropped, Overflow: s.Overflow, StoreFailures: s.StoreFailures,
		HistoryBytes: s.HistoryBytes, HistoryRefused: s.HistoryRefused,
	}
}

func measuredLimits(s *node.LimitsStatus, tallies []httpfront.LimitTally) metrics.Limits {
	m := metrics.Limits{Memory: s.MemoryBytes, Keys: s.Keys, Replaced: s.Replaced, Lost: s.Lost, Refused: s.Refused}
	for _, r := range s.Rules {
		l := metrics.Limit{
			Name: r.Name, Keys: r.Keys, LimitedKeys: r.Limited,
			Delay: time.Duration(r.Bound.DelaySeconds * float64(time.Second)), Most: r.Bound.Most,
		}
		for _, t := range tallies {
			if t.ID.String() == r.ID {
				l.Action, l.Limited = string(t.Action), t.Limited
			}
		}
		if l.Action != "" { // the front follows it, too
			m.Rules = append(m.Rules, l)
		}
	}
	return m
}

func measuredMesh(peers []node.PeerStatus, mesh *transport.Mesh) (m metrics.Mesh) {
	for _, p := range peers {
		switch p.State {
		case transport.Alive.String():
			m.Alive++
			m.LongestRoundTrip = max(m.LongestRoundTrip, p.RTT)
			m.LargestClockOffset = max(m.LargestClockOffset, p.ClockOffset.Abs())
		case transport.Failed.String():
			m.Failed++
		case transport.Left.String():
			m.Left++
		}
	}
	if mesh == nil {
		return m
	}
	s := mesh.Stats()
	m.Links, m.ReceivedBytes, m.SentBytes = s.Links, s.BytesIn, s.BytesOut
	m.RefusedHandshakes, m.RefusedPeers, m.MalformedFrames, m.Panics = s.RefusedHandshakes, s.RefusedPeers, s.MalformedFrames, s.HandlerPanics
	m.CallsReceived, m.CallsSent = s.CallsIn, s.CallsOut
	m.MessagesReceived, m.MessagesSent, m.MessagesReplaced, m.MessagesDropped = s.MessagesIn, s.MessagesOut, s.MessagesReplaced, s.MessagesDropped
	m.QueuedMessages, m.QueuedBytes = s.QueuedMessages, s.QueuedBytes
	m.GossipQueued, m.GossipDropped = s.GossipQueue, s.GossipDropped
	return m
}

func measuredRoom(s *node.RoomStatus) metrics.Room {
	r := metrics.Room{
		Zone: s.Zone, Name: s.Name, Policy: s.Policy, QueueingMethod: s.QueueingMethod,
		Active: s.Active, Waiting: s.Waiting, AdmittedLastMinute: s.AdmittedPerMinute, Slots: int64(s.Slots),
		TotalActiveUsers: int64(s.TotalActiveUsers), NewUsersPerMinute: int64(s.NewUsersPerMinute),
		Session:   time.Duration(s.SessionSeconds * float64(time.Second)),
		Suspended: s.Suspended, QueueAll: s.QueueAll, DryRun: s.DryRun, Resting: s.Resting, EventActive: s.Event != nil && s.Event.Active,
		RoomCounts: metrics.RoomCounts{
			Bypassed: s.Bypassed, WouldQueue: s.WouldQueue, Crowded: s.Crowded, Shared: s.Shared, Copies: s.Copies,
			TicketsGiven: s.Tickets, TicketsRefused: s.TicketsRefused,
		},
	}
	for _, site := range s.Sites {
		if site.Frozen {
			r.FrozenSites++
		}
	}
	if has := s.Rights; has != nil {
		r.Rights = &metrics.Rights{
			Minted: measuredAmount(has.Minted), Held: measuredAmount(has.Held), Free: measuredAmount(has.Free),
			InUse: has.InUse, Lent: has.Lent, InStock: has.InStock, Borrowed: has.Borrowed,
			Alone: has.Alone, HasMinter: has.Minter != "",
		}
	}
	return r
}

func measuredDown(all []node.DownStatus, rooms []node.RoomStatus) (out []metrics.Down) {
	zones := make(map[string]string, len(rooms))
	for i := range rooms {
		zones[rooms[i].ID] = rooms[i].Zone
	}
	for _, d := range all {
		for _, r := range d.Rooms {
			out = append(out, metrics.Down{Zone: zones[r.Room], Room: r.Name, Node: d.Order, Site: d.Site, State: d.State, Capacity: measuredAmount(r.Capacity)})
		}
	}
	return out
}

func measuredAmount(a node.AmountStatus) metrics.Amount {
	return metrics.Amount{Places: a.Places, PerMinute: a.Rate}
}

func measuredOrigin(room string, o *upstream.OriginStatus) metrics.Origin {
	return metrics.Origin{
		Room: room, URL: o.URL, In: o.State == "in" || o.State == "trial",
		Active: o.Active, Idle: o.Idle, Tunnels: o.Tunnels, Requests: o.Requests, Failures: o.Failures,
	}
}
