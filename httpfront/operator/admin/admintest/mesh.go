// Package admintest has a mesh of one node in memory, to ask the admin API of.
package admintest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// Mesh is a mesh in memory. Its zero value is empty, and finds no fault with rooms. It may
// be used by several goroutines; its fields are set before.
type Mesh struct {
	Checks      func(*room.Settings) error                         // nil: all is well
	LimitChecks func(*limit.Rule) error                            // the same
	States      func(crdt.RoomID) (state admin.RoomState, ok bool) // nil: no room is run
	NotYetAt    []string                                           // what edits name
	Fail        func() error                                       // of edits, before anything is written; nil: none fails

	mu    sync.Mutex // guards the following
	lww   crdt.LWW
	clock crdt.Clock
	pages int
	edits int // that wrote something
}

var _ admin.Mesh = (*Mesh)(nil)

// Catalog implements admin.Mesh.
func (m *Mesh) Catalog() *catalog.Catalog {
	m.mu.Lock()
	defer m.mu.Unlock()
	return catalog.Read(&m.lww)
}

// Edit implements admin.Mesh.
func (m *Mesh) Edit(_ context.Context, edit func(*catalog.Catalog) ([]catalog.Write, error)) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	writes, err := edit(catalog.Read(&m.lww))
	if err != nil {
		return nil, err
	}
	if m.Fail != nil {
		if err := m.Fail(); err != nil {
			return nil, err
		}
	}
	if len(writes) > 0 {
		m.edits++
	}
	for _, w := range writes {
		if err := m.lww.Set(w.Key, w.Value, m.clock.Now(time.Now(), crdt.NodeID{1})); err != nil {
			return nil, fmt.Errorf("write %s: %w", w.Key, err)
		}
	}
	return m.NotYetAt, nil
}

// Edits returns how many edits have written something.
func (m *Mesh) Edits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.edits
}

// Forget drops a key of the map, as if it had not arrived yet.
func (m *Mesh) Forget(drop func(key string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.lww.Keys() {
		if drop(key) {
			_ = m.lww.Set(key, nil, m.clock.Now(time.Now(), crdt.NodeID{1})) // the key was good before
		}
	}
}

// Check implements admin.Mesh.
func (m *Mesh) Check(s *room.Settings) error {
	if m.Checks == nil {
		return nil
	}
	return m.Checks(s)
}

// CheckLimit implements admin.Mesh.
func (m *Mesh) CheckLimit(r *limit.Rule) (steps int, err error) {
	if m.LimitChecks == nil {
		return 0, nil
	}
	return 0, m.LimitChecks(r)
}

// Room implements admin.Mesh.
func (m *Mesh) Room(id crdt.RoomID, _ time.Time) (admin.RoomState, bool) {
	if m.States == nil {
		return admin.RoomState{}, false
	}
	return m.States(id)
}

// Preview implements admin.Mesh.
func (m *Mesh) Preview(string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pages++
	return fmt.Sprintf("/preview/%d", m.pages), nil
}
