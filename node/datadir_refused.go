package node

import (
	"errors"
	"fmt"
)

// ErrCopied says that others know more of a node than its data directory does, or
// that another process goes on as that node.
var ErrCopied = errors.New("the data directory was copied or rolled back; end every process that uses a copy of it, move the directory away, start as a new node (with a certificate for a new id, if certificates are your own), and declare this one dead, so that its rights come back")

// Refuse notes in the directory why no start may use it any more: the next start has
// a higher boot number, by which nobody could tell that its rights are those of
// before. A directory in which another process has started since is not ours to mark.
func (d *DataDir) Refuse(why error) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	is, err := d.readIdentity(d.self.Node)
	if err != nil {
		return fmt.Errorf("refuse the data directory: %w", err)
	}
	if is != d.self {
		return nil
	}
	d.refused = why.Error()
	if err := d.writeIdentity(d.self); err != nil {
		return fmt.Errorf("refuse the data directory: %w", err)
	}
	return nil
}
