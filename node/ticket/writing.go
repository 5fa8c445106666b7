package ticket

import (
	"maps"
	"slices"
)

// book is a ledger on its way to the disk. What it says is what holds whatever
// becomes of the writes that are not confirmed.
type book struct {
	disk   ledger // confirmed
	next   ledger // with all that is to be written
	dirty  map[string]bool
	flying []Put
	failed bool

	// While a batch is under way the disk may hold either; these are the lesser.
	leastBound, leastMinted Amount
	leastSpan               int64
}

// openBook returns the book of what is stored.
func openBook(stored []Put) (book, error) {
	b := book{disk: ledger{dealt: noDealt}}
	for _, p := range stored {
		if err := b.disk.apply(p); err != nil {
			return book{}, err
		}
	}
	b.next = b.disk.clone()
	b.settle()
	return b, nil
}

func (b *book) settle() {
	b.leastBound, b.leastMinted, b.leastSpan = b.disk.bound, b.disk.minted, b.disk.span
}

// mark says that the value under a key has changed.
func (b *book) mark(key string) { set(&b.dirty, key, true) }

// clean reports whether everything is confirmed.
func (b *book) clean() bool { return len(b.dirty) == 0 && b.flying == nil }

// writes starts a batch of all that is to be written.
func (b *book) writes() []Put {
	if len(b.dirty) == 0 || b.flying != nil || b.failed {
		return nil
	}
	keys := slices.Sorted(maps.Keys(b.dirty))
	b.flying = make([]Put, len(keys))
	for i, key := range keys {
		b.flying[i] = Put{key, b.next.value(key)}
	}
	b.dirty = nil
	b.leastBound = b.disk.bound.Min(b.next.bound)
	b.leastMinted = b.disk.minted.Min(b.next.minted)
	b.leastSpan = min(b.disk.span, b.next.span)
	return slices.Clone(b.flying)
}

// confirmed ends a batch that is durable and returns what it held.
func (b *book) confirmed() []Put {
	done := b.flying
	b.flying = nil
	for _, p := range done {
		if p.Value == nil {
			b.disk.remove(p.Key)
			continue
		}
		if err := b.disk.apply(p); err != nil {
			panic("ticket: own write: " + err.Error())
		}
	}
	b.settle()
	return done
}

// lost ends a batch of which nobody knows what became. All of it is to be written
// again, and until then the lesser of both values is the one that counts.
func (b *book) lost() {
	for _, p := range b.flying {
		b.mark(p.Key)
	}
	b.disk.bound, b.disk.minted, b.disk.span = b.leastBound, b.leastMinted, b.leastSpan
	b.flying, b.failed = nil, true
}

// stored returns all that is confirmed.
func (b *book) stored() []Put {
	keys := b.disk.keys()
	out := make([]Put, len(keys))
	for i, key := range keys {
		out[i] = Put{key, b.disk.value(key)}
	}
	return out
}

// bound returns how much in use is covered.
func (b *book) bound() Amount { return b.leastBound.Min(b.next.bound) }

// span returns how long leases may last at most for a restart to count them.
func (b *book) span() int64 { return min(b.leastSpan, b.next.span) }

// minted returns what was minted at least.
func (b *book) minted() Amount { return b.leastMinted.Min(b.next.minted) }

// held returns the rights that are owned for sure: what was given or burnt is
// gone at once, what was received or minted counts once it is confirmed.
func (b *book) held() Amount { return b.minted().Add(b.disk.received()).Sub(b.next.gave()) }
