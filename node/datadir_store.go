package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
)

const (
	storeFile = "store"

	// startObject says in the store whose it is and which start wrote it, so that
	// one that was put back from a backup is not taken for the newest: what this
	// node has given away since would be given twice.
	startObject = "start"
	startKey    = "node"
)

// errOldStore says what to do with a directory whose files are of different times.
var errOldStore = errors.New("parts of it were lost, or put back from a backup; rights that have moved since would count twice. " +
	"Move the data directory away to start as a new node, and declare this one dead so that its rights are recovered")

// StorePath returns where the store lies.
func (d *DataDir) StorePath() string { return filepath.Join(d.root.Name(), storeFile) }

// openStore opens the node's store on disk and returns what it holds, and the entry
// that marks it as this start's. The mark is in the store before it returns.
func (d *DataDir) openStore(disk durable.Disk) (_ durable.Store, all []durable.Write, mark durable.Write, err error) {
	s, err := disk.Open(d.StorePath())
	if err != nil {
		return nil, nil, mark, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	var last crdt.Incarnation // who wrote it last; zero: nobody
	damaged := false
	err = s.Load(func(w durable.Write) bool {
		if w.Object != startObject {
			all = append(all, w)
			return true
		}
		last, damaged = decodeMark(w.Value)
		return !damaged
	})
	if err != nil {
		return nil, nil, mark, err
	}
	switch {
	case damaged, last.Node != d.self.Node && (last.Boot > 0 || len(all) > 0):
		return nil, nil, mark, fmt.Errorf("store %s is another node's: %w", d.StorePath(), errOldStore)
	case last.Boot < d.stored:
		return nil, nil, mark, fmt.Errorf("store %s is of start %d, the node had one of start %d: %w", d.StorePath(), last.Boot, d.stored, errOldStore)
	case last.Boot >= d.self.Boot:
		return nil, nil, mark, fmt.Errorf("store %s is of start %d, this is start %d: %w", d.StorePath(), last.Boot, d.self.Boot, errOldStore)
	}
	mark = durable.Write{Object: startObject, Key: startKey, Value: encodeMark(d.self)}
	if err := s.Commit([]durable.Write{mark}); err != nil {
		return nil, nil, mark, err
	}
	// Last, so that a crash before it leaves a store that is newer than demanded.
	d.writing.Lock()
	defer d.writing.Unlock()
	d.stored = d.self.Boot
	if err := d.writeIdentity(d.self); err != nil {
		return nil, nil, mark, fmt.Errorf("data directory %s: %w", d.root.Name(), err)
	}
	return s, all, mark, nil
}

func encodeMark(self crdt.Incarnation) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(nil), self.Node[:]...), self.Boot)
}

func decodeMark(b []byte) (self crdt.Incarnation, damaged bool) {
	if len(b) != len(self.Node)+8 {
		return self, true
	}
	copy(self.Node[:], b)
	self.Boot = binary.BigEndian.Uint64(b[len(self.Node):])
	return self, false
}
