package node

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
	"github.com/ropeline/ropeline/transport"
)

// Abandon takes out of the directory all that makes it this node's, once the
// node has left: what starts with it next is a new node, with rights of its own to
// come. A directory that was abandoned in part is refused at the next start.
func (d *DataDir) Abandon() error {
	for _, name := range []string{storeFile, countsFile, identityFile} {
		if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("abandon the data directory: %w", err)
		}
	}
	return nil
}

// deadStore is where the store of a node lies that was declared dead. Nobody reads it, but whoever wants to know what
// that node had.
const deadStore = storeFile + ".dead"

// renew makes the directory that of a new node, which is not on disk before the identity is written. A
// crash before that leaves the mark of the former one.
func (d *DataDir) renew() (crdt.Incarnation, error) {
	err := d.root.Rename(storeFile, deadStore)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = d.root.Remove(countsFile)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return crdt.Incarnation{}, fmt.Errorf("start as a new node: %w", err)
	}
	d.key, d.stored, d.mesh, d.refused = newKey(), 0, bootstrap.Disk{}, ""
	return crdt.Incarnation{Node: crdt.NodeID(transport.IDOf(d.key))}, nil
}
