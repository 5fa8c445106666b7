// Package faultstore is a store that fails as disks do: at a chosen commit, with or
// without having written it, slowly, when it is full, and with a crash that keeps
// any part of what was not confirmed. Tests and the harness of faults put it between
// objects and a real store, or use it as a disk in memory.
package faultstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/ropeline/ropeline/node/durable"
)

// ErrInjected is the failure of a commit that was told to fail. Where the disk is
// full the error is syscall.ENOSPC instead.
var ErrInjected = errors.New("injected fault")

// Outcome says what a failing commit leaves on disk. Its caller gets an error in any
// case and cannot tell.
type Outcome int

const (
	Lost  Outcome = iota // nothing of it
	Kept                 // all of it
	Maybe                // all or nothing, by chance; known only after a crash
)

// Faults is what a disk does wrong. The zero value is a disk without fault.
type Faults struct {
	FailAt  int           // the commit that fails, counted from 1 over all stores of the disk; 0: none
	Outcome Outcome       // what a failing commit leaves
	Delay   time.Duration // of every commit and creation
	// Room is how many bytes of keys and values may be written before the disk is
	// full; 0: it never is. What is overwritten counts again.
	Room int
}

// Disk is a disk with faults over another one. Any goroutine may use it.
type Disk struct {
	under durable.Disk

	mu      sync.Mutex // guards the following
	faults  Faults
	rng     *rand.Rand
	commits int
	created int
	written int
}

var _ durable.Disk = (*Disk)(nil)

// New returns a disk without faults over under. seed decides what Maybe leaves.
func New(under durable.Disk, seed uint64) *Disk {
	return &Disk{under: under, rng: rand.New(rand.NewPCG(seed, 0))}
}

// Set replaces the faults, from the next operation on. What was written no longer
// counts for Room.
func (d *Disk) Set(f Faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults, d.written = f, 0
}

// Commits returns how many commits were begun on this disk, failed ones included.
func (d *Disk) Commits() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.commits
}

// Created returns how many stores were created successfully.
func (d *Disk) Created() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.created
}

// Open is [durable.Disk.Open].
func (d *Disk) Open(path string) (durable.Store, error) {
	s, err := d.under.Open(path)
	if err != nil {
		return nil, err
	}
	return &store{Store: s, disk: d, path: path}, nil
}

// Create is [durable.Disk.Create]; it fails while the disk is full. FailAt does not
// concern it.
func (d *Disk) Create(path string, all []durable.Write) (durable.Store, error) {
	d.mu.Lock()
	delay, err := d.faults.Delay, d.fillLocked(all)
	d.mu.Unlock()
	time.Sleep(delay)
	if err != nil {
		return nil, fmt.Errorf("new store %s: %w", path, err)
	}
	s, err := d.under.Create(path, all)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.created++
	d.mu.Unlock()
	return &store{Store: s, disk: d, path: path}, nil
}

// Free is [durable.Disk.Free]; with Room, of that.
func (d *Disk) Free(path string) (free, size int64, err error) {
	d.mu.Lock()
	room, left := int64(d.faults.Room), int64(d.faults.Room-d.written)
	d.mu.Unlock()
	if room > 0 {
		return max(0, left), room, nil
	}
	return d.under.Free(path)
}

// fillLocked takes the room for a batch, or returns ENOSPC.
func (d *Disk) fillLocked(batch []durable.Write) error {
	if d.faults.Room <= 0 {
		return nil
	}
	for _, w := range batch {
		d.written += len(w.Object) + len(w.Key) + len(w.Value)
	}
	if d.written > d.faults.Room {
		return syscall.ENOSPC
	}
	return nil
}

// verdict is what becomes of one commit.
type verdict struct {
	delay time.Duration
	err   error // the caller's
	kept  bool
}

func (d *Disk) judge(batch []durable.Write) verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.commits++
	v := verdict{delay: d.faults.Delay, kept: true}
	if v.err = d.fillLocked(batch); v.err != nil {
		v.kept = false
		return v
	}
	if d.commits == d.faults.FailAt {
		v.err = ErrInjected
		v.kept = d.faults.Outcome == Kept || d.faults.Outcome == Maybe && d.rng.IntN(2) == 0
	}
	return v
}

// store is one store of a disk.
type store struct {
	durable.Store
	disk *Disk
	path string

	mu      sync.Mutex // guards the following
	broken  bool
	pending []durable.Write // kept by a failed commit, but not to be seen before the store is opened again
}

// Commit is [durable.Store.Commit].
func (s *store) Commit(batch []durable.Write) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return fmt.Errorf("store %s: %w", s.path, durable.ErrBroken)
	}
	v := s.disk.judge(batch)
	time.Sleep(v.delay)
	if v.err == nil {
		if v.err = s.Store.Commit(batch); v.err == nil {
			return nil
		}
		if errors.Is(v.err, durable.ErrLimit) {
			return v.err
		}
		v.kept = false
	}
	s.broken = true
	if v.kept {
		s.pending = append(s.pending, batch...)
	}
	return fmt.Errorf("store %s: commit: %w", s.path, v.err)
}

// Close is [durable.Store.Close]. What a failed commit has kept is on disk now.
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if len(s.pending) > 0 {
		err = s.Store.Commit(s.pending)
		s.pending = nil
	}
	return errors.Join(err, s.Store.Close())
}
