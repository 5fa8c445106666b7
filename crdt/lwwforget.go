package crdt

import "encoding/hex"

// How deletions are forgotten. Every node that exists has them on its disk by then, and all that any node had written
// before it did: so nothing is under way that would bring what was deleted back, and what comes late is known here, and
// no news. A node of which nobody knew, and that has slept through the deletion, learns from the first piece it gets
// that it has missed something which no node has any more.

// Settling is what all nodes that exist have on their disks at one time. What All says of a deletion is settled once
// All has come to what Any was then: until then somebody may not have heard of an older write to the same key.
type Settling struct {
	All LWWDigest // that each of them has
	Any LWWDigest // that at least one of them has
}

// SettlingOf returns it of what each node has.
func SettlingOf(kept []LWWDigest) Settling {
	s := Settling{All: LWWDigest{}, Any: LWWDigest{}}
	for _, d := range kept {
		for writer, n := range d {
			s.Any[writer] = max(s.Any[writer], n)
		}
	}
	for writer, n := range s.Any {
		for _, d := range kept {
			n = min(n, d[writer])
		}
		s.All[writer] = n
	}
	return s
}

// Settles reports whether what all had at an earlier time is settled now.
func (s Settling) Settles(then Settling) bool {
	for writer, n := range then.Any {
		if s.All[writer] < n {
			return false
		}
	}
	return true
}

// horizon is up to which packed stamp deletions of a node may be forgotten, and with which change.
type horizon struct{ upTo, change uint64 }

func (h horizon) part(writer NodeID) Part {
	w := newWriter(nil)
	w.uint(h.upTo)
	return Part{partForgot + hex.EncodeToString(writer[:]), w.must()}
}

// Deleted returns how many keys there are that were deleted.
func (m *LWW) Deleted() int { return m.gone }

// Forget forgets deletions, so many at most, with stamps up to those of a digest, which are settled: see
// Settling. It returns what is to be stored of that, before any later change: parts without a value are to be removed.
func (m *LWW) Forget(settled LWWDigest, most int) (parts []Part) {
	if m.gone == 0 {
		return nil
	}
	upTo := map[NodeID]uint64{}
	var keys []string
	for k, c := range m.entries.entries.All() {
		if !c.gone() || len(keys) >= most {
			continue
		}
		key, writer := m.entries.key(k), m.entries.writers[c.index()].node
		if _, covers := m.beneath[key]; covers || c.at > settled[writer] || c.at > m.KnownOf(writer) {
			continue
		}
		keys = append(keys, key)
		upTo[writer] = max(upTo[writer], c.at)
	}
	for writer, n := range upTo {
		m.forgetUpTo(writer, n)
		parts = append(parts, m.forgot[writer].part(writer))
	}
	for _, key := range keys {
		m.entries.remove(key)
		m.size -= len(key)
		m.gone--
		parts = append(parts, Part{Name: partWrite + key})
	}
	if len(keys) > 0 {
		m.entries.shared = nil // values that nothing has any more may be among them
	}
	return parts
}

func (m *LWW) forgetUpTo(writer NodeID, n uint64) {
	if n <= m.forgot[writer].upTo {
		return
	}
	if m.forgot == nil {
		m.forgot = map[NodeID]horizon{}
	}
	m.forgot[writer] = horizon{n, m.changes + 1}
}
