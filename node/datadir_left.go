package node

import (
	"errors"
	"fmt"
	"io/fs"
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
