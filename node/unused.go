package node

import (
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
)

// What nobody needs any more of the catalog: pages that others have taken the place of, and
// changes of what was deleted meanwhile. An act leaves it where it is, since another act, which
// nobody has heard of yet, may refer to it. Each node deletes what it has written itself: of that
// it knows all that refers to it, and nobody else ever will.

// unusedInterval is how often it is looked for. What was unused at the last look already goes:
// nodes in reach have long heard why it is.
const unusedInterval = time.Minute

// maxUnused is how many keys go at once.
const maxUnused = 256

// dropUnused deletes what this node has written and nobody needs any more.
func (c *Core) dropUnused(now time.Time) {
	k := c.catalog
	if k == nil || c.leave.on || now.Sub(k.looked) < unusedInterval && !now.Before(k.looked) {
		return
	}
	k.looked = now
	read := k.read.Load()
	if read == nil {
		return
	}
	var gone []catalog.Write
	unused := map[string]bool{}
	for key := range read.Unused() {
		if _, at, ok := c.replica.Get(key); ok && at.Node == c.self.Node {
			unused[key] = true
			if k.unused[key] {
				gone = append(gone, catalog.Write{Key: key})
			}
		}
	}
	slices.SortFunc(gone, func(a, b catalog.Write) int { return strings.Compare(a.Key, b.Key) })
	if k.unused = unused; len(gone) > 0 && c.writeCatalog(nil, gone[:min(len(gone), maxUnused)], crdt.Change, now) != nil {
		c.factsFull.Add(1)
	}
}
