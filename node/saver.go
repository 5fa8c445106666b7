package node

import (
	"crypto/sha256"
	"log/slog"
)

// saver writes the newest state, off the loop: a disk may take its time. A state is as large as
// all rooms, and comes once a second; so what it was in is used again. As often it looks whether
// the node still has its identity.
type saver struct {
	data  *DataDir
	log   *slog.Logger
	next  chan []byte // holds the newest state only
	spare chan []byte // holds what a state was in
}

func newSaver(data *DataDir, log *slog.Logger) *saver {
	return &saver{data: data, log: log, next: make(chan []byte, 1), spare: make(chan []byte, 1)}
}

// buffer returns what the next state may be appended to.
func (s *saver) buffer() []byte {
	select {
	case b := <-s.spare:
		return b[:0]
	default:
		return nil
	}
}

// save replaces a state that has not been written yet. One goroutine calls it. The state is the saver's from
// then on.
func (s *saver) save(state []byte) {
	select {
	case old := <-s.next:
		s.done(old)
	default:
	}
	s.next <- state
}

// done has a state's memory be used again.
func (s *saver) done(state []byte) {
	select {
	case s.spare <- state:
	default:
	}
}

func (s *saver) close() { close(s.next) }

func (s *saver) run() {
	var last [sha256.Size]byte // of the state that was written
	failed, lost := false, false
	for state := range s.next {
		lost = s.keepIdentity(lost)
		sum := sha256.Sum256(state)
		if sum == last {
			s.done(state)
			continue
		}
		err := s.data.SaveCounts(state)
		if err != nil && !failed {
			s.log.Error("counts cannot be kept; after a restart this node starts from what its peers know", "error", err)
		}
		if err == nil && failed {
			s.log.Info("counts are kept again")
		}
		failed = err != nil
		if !failed {
			last = sum
		}
		s.done(state)
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
