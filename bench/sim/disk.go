package sim

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/durable"
)

// Disks in virtual time. A node says what it wants written, one batch at a time,
// and hears later what became of it.

// mendEvery is how long a node waits before it tries a new file, after a write
// has failed or the last try has.
const mendEvery = time.Second

var errDisk = errors.New("sim: the disk failed")

// place is where a value is kept.
type place struct{ object, key string }

// disk is what a node's data directory holds. It outlives the process; a lost
// disk is replaced by a new one.
type disk struct {
	state []byte           // counts, as a save has left them
	kept  map[place][]byte // what a start of the node finds
	under []durable.Write  // the batch under way, or all of a new file
	step  diskStep
	ended error // of the batch, for a node that is paused and has not heard
	rng   *rand.Rand

	full, failing int   // how many faults say so
	slower        int64 // what faults add to every write
}

// diskStep is what a disk is doing.
type diskStep uint8

const (
	diskIdle    diskStep = iota
	diskWrites           // a batch
	diskEnded            // a batch, but the node is paused and has not heard
	diskBroken           // nothing: a write has failed, and a new file is due
	diskRenewed          // a new file is being written
)

func newDisk(seed uint64, number int32) *disk {
	return &disk{kept: map[place][]byte{}, rng: rand.New(rand.NewPCG(keyed(seed, forDisks, uint64(number), 0), forDisks))}
}

// stored returns what a start of the node finds, in a fixed order.
func (d *disk) stored() []durable.Write {
	all := make([]durable.Write, 0, len(d.kept))
	for p, v := range d.kept {
		all = append(all, durable.Write{Object: p.object, Key: p.key, Value: v})
	}
	slices.SortFunc(all, func(a, b durable.Write) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Key, b.Key))
	})
	return all
}

// apply takes a batch over, whole.
func (d *disk) apply(batch []durable.Write) {
	for _, w := range batch {
		if p := (place{w.Object, w.Key}); w.Value == nil {
			delete(d.kept, p)
		} else {
			d.kept[p] = slices.Clone(w.Value)
		}
	}
}

// takes draws how long the next write takes.
func (d *disk) takes(median time.Duration) int64 {
	const spread = 0.4 // the deviation of its logarithm
	return int64(float64(median)*math.Exp(spread*d.rng.NormFloat64())) + d.slower
}

// fails draws whether the write that ends now fails, and if so, whether it is on
// the disk all the same: who wrote it cannot know.
func (d *disk) fails() (fails, kept bool) {
	switch {
	case d.full > 0:
		return true, false
	case d.failing > 0:
		return true, d.rng.IntN(2) == 0
	}
	return false, true
}

// cut ends what is under way because the node is no more. A batch may have got
// to the disk before that, or not; it never gets there in parts.
func (d *disk) cut() {
	done := d.full == 0 && d.rng.IntN(2) == 0
	switch {
	case d.step == diskWrites && done:
		d.apply(d.under)
	case d.step == diskRenewed && done:
		d.replace(d.under)
	}
	d.under, d.step, d.ended = nil, diskIdle, nil
}

// replace puts a new file in the place of the old one.
func (d *disk) replace(all []durable.Write) {
	clear(d.kept)
	d.apply(all)
}

// worse begins a fault of the disk (by is 1), or ends it.
func (d *disk) worse(f Fault, by int) {
	switch f.Kind {
	case DiskFull:
		d.full += by
	case DiskFail:
		d.failing += by
	case DiskSlow:
		d.slower += int64(by) * int64(f.By)
	}
}

// store has a node's disk write what the node wants kept. It is called whenever a
// node was given something to do.
func (s *sim) store(m *machine) {
	d := m.disk
	if m.brain == nil || d.step != diskIdle {
		return
	}
	s.driven = m
	batch := m.brain.Writes()
	if batch == nil {
		return
	}
	s.f.Writes++
	d.under, d.step = batch, diskWrites
	s.heap.add(s.now+d.takes(s.cfg.Disk), wrote, m.no, m.started)
}

// wrote ends a write.
func (s *sim) wrote(m *machine) {
	d := m.disk
	switch {
	case d.step == diskBroken:
		s.renew(m)
		return
	case d.step == diskRenewed && m.paused:
		s.heap.add(s.now+int64(mendEvery), wrote, m.no, m.started) // it cannot hear of it yet
		return
	}
	fails, kept := d.fails()
	switch d.step {
	case diskWrites:
		if kept {
			d.apply(d.under)
		}
		d.ended = nil
		if fails {
			d.ended = errDisk
			s.f.WritesFailed++
		}
		d.under, d.step = nil, diskEnded
		if !m.paused {
			s.written(m)
		}
	case diskRenewed:
		if fails {
			d.under, d.step = nil, diskBroken
			s.heap.add(s.now+int64(mendEvery), wrote, m.no, m.started)
			return
		}
		d.replace(d.under)
		d.under, d.step = nil, diskIdle
		s.driven = m
		m.brain.StoreBack(m.clock.at(s.now))
		s.store(m)
	}
}

// written tells a node what became of its batch.
func (s *sim) written(m *machine) {
	d := m.disk
	err := d.ended
	d.ended, d.step = nil, diskIdle
	if err != nil {
		d.step = diskBroken
		s.heap.add(s.now+int64(mendEvery), wrote, m.no, m.started)
	}
	s.driven = m
	s.post(m, m.brain.Written(err, m.clock.at(s.now)))
	s.note(m)
	s.hand()
	s.store(m)
}

// renew begins a new file: one whose write has failed is never written to again.
// While a node is paused its turn comes later.
func (s *sim) renew(m *machine) {
	d := m.disk
	if m.paused || d.full > 0 || d.failing > 0 {
		s.heap.add(s.now+int64(mendEvery), wrote, m.no, m.started)
		return
	}
	s.driven = m
	d.under, d.step = m.brain.Stored(), diskRenewed
	s.heap.add(s.now+d.takes(s.cfg.Disk), wrote, m.no, m.started)
}
