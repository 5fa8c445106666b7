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
// it knows all that refers to it, and nobody else ever will. What was written by a node that exists no more
// any other deletes, once it knows all that there was when it was unused already.

// unusedInterval is how often it is looked for. What was unused at the last look already goes:
// nodes in reach have long heard why it is.
const unusedInterval = time.Minute

// maxUnused is how many keys go at once.
const maxUnused = 256

// dropUnused deletes what nobody needs any more and this node has written, or one that exists no more.
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
	k.orphans = false
	unused, existing := map[string]time.Time{}, c.existing()
	for key := range read.Unused() {
		_, at, ok := c.replica.Get(key)
		_, exists := existing[at.Node]
		mine := at.Node == c.self.Node
		if !ok || exists && !mine {
			continue
		}
		since, seen := k.unused[key]
		if !seen || now.Before(since) {
			since, seen = now, false
		}
		unused[key] = since
		k.orphans = k.orphans || !mine
		if mine && seen || !mine && since.Before(c.forgetting.upTo) {
			gone = append(gone, catalog.Write{Key: key})
		}
	}
	slices.SortFunc(gone, func(a, b catalog.Write) int { return strings.Compare(a.Key, b.Key) })
	if k.unused = unused; len(gone) > 0 && c.writeCatalog(nil, gone[:min(len(gone), maxUnused)], crdt.Change, now) != nil {
		c.factsFull.Add(1)
	}
}
