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
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/durable"
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
	m.Metrics, err = metrics.New(m.sample, httpfront.Outcomes())
	return m, err
}

// Record implements httpfront.RequestCounter.
func (m *measures) Record(of crdt.RoomID, o httpfront.Outcome, took time.Duration) {
	if !m.named.Load() || m.as.Load() != m.of.node.Catalog() {
		m.name() // before the first request of a room is counted
	}
	m.Requests().Record(of, int(o), took)
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
	s := metrics.Sample{Node: a.lame().Status(), Disk: measuredDisk(a.dir.StorePath()), Origins: a.front.Origins(), Certificates: a.visitors.status()}
	s.Node.Down = a.seen.Down(&s.Node, a.node.Now())
	if a.mesh != nil {
		s.Mesh = a.mesh.Stats()
	}
	for _, t := range a.front.LimitTallies() {
		s.Limits = append(s.Limits, metrics.LimitTally{ID: t.ID.String(), Action: string(t.Action), Requests: t.Limited})
	}
	s.Front.Connections, s.Front.RequestsInFlight = a.front.Load()
	s.Front.ConnectionsMax = a.bounds.Visitors
	if a.access != nil {
		is := a.access.Stats()
		s.Front.AccessLines, s.Front.AccessDropped, s.Front.AccessErrors = is.Lines, is.Dropped, is.Errors
	}
	if dropped := a.cfg.LogDropped; dropped != nil {
		s.Front.LogDropped = dropped()
	}
	return s
}
