package durable

// entries is what an object has in memory of its keys: all that is not confirmed,
// and as much of the rest as its cache may hold.
type entries struct {
	m       map[string]entry
	started bool // keys is right
	full    bool // m has every key there is; one that is missing does not exist
	keys    int  // that exist, confirmed or not
	parked  int  // bytes of entries that are there as a cache only
	log     []change
}

// entry is one key. A nil value says that there is none.
type entry struct {
	value  []byte
	seq    uint64 // the batch that wrote it
	keep   bool   // stays in the cache once confirmed
	parked bool   // confirmed, and counted as such
}

// change is what a write of the open batch has replaced.
type change struct {
	key    string
	before entry
	was    bool // before was in memory
	again  bool // the open batch had written the key already
	keys   int  // how many keys there were
	cost   int  // of the write
}

func costOf(key string, value []byte) int { return entryCost + len(key) + len(value) }

// start takes what the store has. Entries that are not confirmed are newer.
func (e *entries) start(l loaded) {
	e.started, e.full, e.keys = true, len(l.values) == len(l.keys), 0
	for _, en := range e.m {
		if en.value != nil {
			e.keys++
		}
	}
	for i, key := range l.keys {
		if _, newer := e.m[key]; newer {
			continue
		}
		e.keys++
		if i < len(l.values) {
			e.park(key, entry{value: l.values[i], keep: true})
		}
	}
}

// set writes a key in the open batch. existed says whether it had a value.
func (e *entries) set(key string, next entry, existed bool, cost int) {
	before, was := e.m[key]
	e.log = append(e.log, change{key, before, was, was && before.seq == next.seq, e.keys, cost})
	if before.parked {
		e.parked -= costOf(key, before.value)
	}
	if e.m == nil {
		e.m = make(map[string]entry)
	}
	e.m[key] = next
	if existed && next.value == nil {
		e.keys--
	}
	if !existed && next.value != nil {
		e.keys++
	}
}

// rollBack undoes the log down to mark and returns the cost of what is undone.
func (e *entries) rollBack(mark int, confirmed uint64) (cost int) {
	for i := len(e.log) - 1; i >= mark; i-- {
		c := e.log[i]
		cost += c.cost
		e.keys = c.keys
		delete(e.m, c.key)
		if !c.was {
			continue
		}
		e.m[c.key] = c.before
		if c.before.parked {
			e.parked += costOf(c.key, c.before.value)
		} else {
			e.settle(c.key, confirmed) // it may have been confirmed meanwhile
		}
	}
	clear(e.log[mark:])
	e.log = e.log[:mark]
	return cost
}

// seal ends the open batch and adds its writes to those of earlier ones.
func (e *entries) seal(sealed map[string][]byte) {
	for _, c := range e.log {
		if !c.again {
			sealed[c.key] = e.m[c.key].value
		}
	}
	clear(e.log)
	e.log = e.log[:0]
}

// settle takes note that a key's entry is confirmed, if it is.
func (e *entries) settle(key string, confirmed uint64) {
	en, ok := e.m[key]
	switch {
	case !ok || en.parked || en.seq > confirmed:
	case en.value == nil && e.full:
		delete(e.m, key) // that it is missing says the same
	case !en.keep:
		delete(e.m, key)
		e.full = false
	default:
		e.park(key, en)
	}
}

// park keeps a confirmed entry as a cache.
func (e *entries) park(key string, en entry) {
	if e.m == nil {
		e.m = make(map[string]entry)
	}
	en.parked = true
	e.m[key] = en
	e.parked += costOf(key, en.value)
}

// shrink drops parked entries until the cache is half empty, once it is over limit.
func (e *entries) shrink(limit int) {
	if e.parked <= limit {
		return
	}
	e.full = false
	for key, en := range e.m {
		if !en.parked {
			continue
		}
		delete(e.m, key)
		if e.parked -= costOf(key, en.value); e.parked <= limit/2 {
			return
		}
	}
}

// forget drops from memory what is confirmed; the store has it.
func (e *entries) forget(confirmed uint64) {
	for key, en := range e.m {
		if en.seq <= confirmed {
			delete(e.m, key)
		}
	}
	e.started, e.full, e.keys, e.parked = false, false, 0, 0
}
