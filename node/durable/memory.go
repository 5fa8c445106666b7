package durable

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Memory is a store that nothing outlives, for tests: what a file does is compared with
// it, and package faultstore makes disks of it. A node always has a file.
type Memory struct {
	mu     sync.RWMutex // guards the following
	keys   map[string]map[string][]byte
	closed bool
}

var _ Store = (*Memory)(nil)

// NewMemory returns a store with this content.
func NewMemory(all []Write) (*Memory, error) {
	m := &Memory{keys: make(map[string]map[string][]byte)}
	return m, m.Commit(all)
}

// Get is [Store.Get].
func (m *Memory) Get(object, key string) ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return nil, ErrClosed
	}
	return slices.Clone(m.keys[object][key]), nil
}

// List is [Store.List].
func (m *Memory) List(object string, r Range, yield func(string, []byte) bool) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return ErrClosed
	}
	var keys []string
	for key := range m.keys[object] {
		if r.contains(key) {
			keys = append(keys, key)
		}
	}
	for _, key := range r.cut(keys) {
		if !yield(key, slices.Clone(m.keys[object][key])) {
			return nil
		}
	}
	return nil
}

// cut puts keys that the range selects in its order and keeps as many as it wants.
func (r Range) cut(keys []string) []string {
	slices.Sort(keys)
	if r.Reverse {
		slices.Reverse(keys)
	}
	if r.Limit > 0 && len(keys) > r.Limit {
		keys = keys[:r.Limit]
	}
	return keys
}

// Load is [Store.Load].
func (m *Memory) Load(yield func(Write) bool) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return ErrClosed
	}
	for _, object := range slices.Sorted(maps.Keys(m.keys)) {
		for _, key := range slices.Sorted(maps.Keys(m.keys[object])) {
			if !yield(Write{object, key, slices.Clone(m.keys[object][key])}) {
				return nil
			}
		}
	}
	return nil
}

// Commit is [Store.Commit]; it fails for what is beyond the limits only.
func (m *Memory) Commit(batch []Write) error {
	if err := checkAll(batch); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	for _, w := range batch {
		m.set(w)
	}
	return nil
}

func (m *Memory) set(w Write) {
	keys := m.keys[w.Object]
	if w.Value == nil {
		if delete(keys, w.Key); len(keys) == 0 {
			delete(m.keys, w.Object)
		}
		return
	}
	if keys == nil {
		keys = make(map[string][]byte)
		m.keys[strings.Clone(w.Object)] = keys
	}
	keys[strings.Clone(w.Key)] = append(make([]byte, 0, len(w.Value)), w.Value...)
}

// Check is [Store.Check]: memory stays where it is.
func (m *Memory) Check() error { return nil }

// Close is [Store.Close]; the content is gone.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.keys = true, nil
	return nil
}

func checkAll(batch []Write) error {
	for _, w := range batch {
		if err := w.check(); err != nil {
			return err
		}
	}
	return nil
}
