package faultstore

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/ropeline/ropeline/node/durable"
)

// ErrCrashed is what a store answers whose machine has crashed.
var ErrCrashed = errors.New("the machine has crashed")

// Memory is a disk in memory that outlives the stores on it. What a commit has
// written is not on the disk before the commit ends: a crash in between leaves all
// of it or nothing, by chance, as the contract of a store has it.
type Memory struct {
	// Syncing, if set, runs while a commit, or a creation, is written and not yet
	// on the disk. It may block, and it may call Crash.
	Syncing func()

	mu     sync.Mutex // guards the following
	rng    *rand.Rand
	boot   int
	stores map[string]*durable.Memory
	staged map[*stage]bool
}

// stage is what is written and not yet on the disk.
type stage struct{ land func() error }

var _ durable.Disk = (*Memory)(nil)

// NewMemory returns an empty disk. seed decides what crashes leave.
func NewMemory(seed uint64) *Memory {
	return &Memory{rng: rand.New(rand.NewPCG(seed, 1)), stores: make(map[string]*durable.Memory), staged: make(map[*stage]bool)}
}

// Crash takes the machine down: stores that are open answer ErrCrashed from now on,
// and what was being written is on the disk or not. Stores that are opened
// afterwards show what is left.
func (m *Memory) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boot++
	for s := range m.staged {
		if m.rng.IntN(2) == 0 {
			s.land()
		}
		delete(m.staged, s)
	}
}

// Open is [durable.Disk.Open].
func (m *Memory) Open(path string) (durable.Store, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stores[path] == nil {
		m.stores[path], _ = durable.NewMemory(nil) // nothing exceeds no limit
	}
	return &memoryStore{disk: m, boot: m.boot, Memory: m.stores[path]}, nil
}

// Create is [durable.Disk.Create].
func (m *Memory) Create(path string, all []durable.Write) (durable.Store, error) {
	fresh, err := durable.NewMemory(all)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	boot := m.boot
	m.mu.Unlock()
	err = m.write(boot, func() error {
		m.stores[path] = fresh
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &memoryStore{disk: m, boot: boot, Memory: fresh}, nil
}

// Free is [durable.Disk.Free]; there is always room.
func (m *Memory) Free(string) (free, size int64, err error) { return math.MaxInt64, math.MaxInt64, nil }

// write has land run once what it stands for is on the disk.
func (m *Memory) write(boot int, land func() error) error {
	s := &stage{land}
	m.mu.Lock()
	if m.boot != boot {
		m.mu.Unlock()
		return ErrCrashed
	}
	m.staged[s] = true
	m.mu.Unlock()
	if m.Syncing != nil {
		m.Syncing()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.staged[s] {
		return ErrCrashed
	}
	delete(m.staged, s)
	return land()
}

func (m *Memory) up(boot int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.boot != boot {
		return ErrCrashed
	}
	return nil
}

// memoryStore is a store on the disk, as one start of the machine sees it.
type memoryStore struct {
	disk *Memory
	boot int
	*durable.Memory
}

func (s *memoryStore) Get(object, key string) ([]byte, error) {
	if err := s.disk.up(s.boot); err != nil {
		return nil, err
	}
	return s.Memory.Get(object, key)
}

func (s *memoryStore) List(object string, r durable.Range, yield func(string, []byte) bool) error {
	if err := s.disk.up(s.boot); err != nil {
		return err
	}
	return s.Memory.List(object, r, yield)
}

func (s *memoryStore) Load(yield func(durable.Write) bool) error {
	if err := s.disk.up(s.boot); err != nil {
		return err
	}
	return s.Memory.Load(yield)
}

func (s *memoryStore) Commit(batch []durable.Write) error {
	return s.disk.write(s.boot, func() error { return s.Memory.Commit(batch) })
}

// Check is [durable.Store.Check]: it stays where it is.
func (s *memoryStore) Check() error { return nil }

// Close leaves the content on the disk.
func (s *memoryStore) Close() error { return nil }
