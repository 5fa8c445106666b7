package node

import (
	"log/slog"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
)

// counts says what of a node's counts the disk is to take next: what changed since the last time,
// and all of them when that has come to be as much, or rooms are gone for good. So what is written follows from what changes, and
// not from how many rooms there are.
type counts struct {
	kept, next replica.Kept
	behind     bool      // the disk has to take all
	size       int       // bytes of all, when they were last written
	grown      int       // bytes of changes since
	life       time.Time // when a sign of life is next worth a write
}

// minGrown is how many bytes of changes there are at least before all is written again.
const minGrown = 64 << 10

func newCounts() counts { return counts{behind: true} }

// record appends what the disk is to take; nothing, if nothing is worth it. That nothing has happened but
// for signs of life, as there is one each tick, is worth one write a tick, and never all.
func (s *counts) record(r *replica.Replica, dst []byte, now time.Time) (record []byte, all bool, err error) {
	start := len(dst)
	switch news := r.NewsSince(s.kept); {
	case s.behind || s.grown > max(s.size, minGrown) || r.DroppedSince(s.kept):
		all = true
		record, err = r.AppendSnapshot(dst)
	case news.Empty() || !news.Counts() && now.Before(s.life) && now.Add(crdt.TickSpan).After(s.life):
		return dst, false, nil
	default:
		record, err = news.Append(dst)
	}
	if err != nil {
		return dst, false, err
	}
	s.next, s.life = r.Kept(), now.Add(crdt.TickSpan)
	if n := len(record) - start; all {
		s.size, s.grown = n, 0
	} else {
		s.grown += n
	}
	return record, all, nil
}

// written says what became of the last record.
func (s *counts) written(err error) {
	s.behind = err != nil
	if err == nil {
		s.kept = s.next
	}
}

// saver writes counts, off the loop: a disk may take its time. Meanwhile nothing more is made of them. Each
// second it looks whether the node still has its identity.
type saver struct {
	data   *DataDir
	log    *slog.Logger
	counts counts
	flying bool   // the disk has a record
	buffer []byte // what records are made in
	next   chan countsRecord
	done   chan error // what became of each
}

// countsRecord is what the disk is to take; with no content it only looks for the identity.
type countsRecord struct {
	content []byte
	all     bool
}

func newSaver(data *DataDir, log *slog.Logger) *saver {
	return &saver{data: data, log: log, counts: newCounts(), next: make(chan countsRecord, 1), done: make(chan error, 1)}
}

// step has the disk take what has changed, unless it is not done with what it took before. One
// goroutine calls it.
func (s *saver) step(r *replica.Replica, now time.Time) error {
	if s.flying {
		select {
		case err := <-s.done:
			s.settle(err)
		default:
			return nil
		}
	}
	return s.start(r, now)
}

func (s *saver) settle(err error) {
	s.flying = false
	s.counts.written(err)
}

func (s *saver) start(r *replica.Replica, now time.Time) error {
	content, all, err := s.counts.record(r, s.buffer[:0], now)
	if err != nil {
		return err
	}
	s.buffer, s.flying = content, true
	s.next <- countsRecord{content, all}
	return nil
}

// close has the disk take the last that there is, and ends run.
func (s *saver) close(r *replica.Replica, now time.Time) error {
	defer close(s.next)
	if s.flying {
		s.settle(<-s.done)
	}
	s.counts.life = time.Time{}
	return s.start(r, now)
}

func (s *saver) run() {
	failed, lost := false, false
	for r := range s.next {
		lost = s.keepIdentity(lost)
		if len(r.content) == 0 {
			s.done <- nil
			continue
		}
		take := s.data.AppendCounts
		if r.all {
			take = s.data.SaveCounts
		}
		err := take(r.content)
		if err != nil && !failed {
			s.log.Error("counts cannot be kept; after a restart this node starts from what its peers know", "error", err)
		}
		if err == nil && failed {
			s.log.Info("counts are kept again")
		}
		failed = err != nil
		s.done <- err
	}
}

// keepIdentity has the node have its identity on disk. lost is what it returned last: whether there was none to be had.
func (s *saver) keepIdentity(lost bool) bool {
	written, err := s.data.KeepIdentity()
	switch {
	case err != nil && !lost:
		s.log.Error("the identity of this node is not in its data directory, and cannot be written; the next start will be refused", "error", err)
	case written && err == nil:
		s.log.Warn("the identity of this node was removed from its data directory, and is written again")
	}
	return err != nil
}
