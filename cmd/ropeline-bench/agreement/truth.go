package agreement

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// What is true, as far as operators know: what they did where and when, and how that was answered.

// deed is one act.
type deed struct {
	name     string
	at       crdt.NodeID
	began    time.Duration
	answered bool
	ended    time.Duration
	holders  map[crdt.NodeID]bool // who had it on disk when it was answered, as the answer says
	wrong    bool                 // the clock of its node was
	everyone bool                 // it is in the file of each node
}

// thing is a room, or something in one, or a rate limit.
type thing struct {
	room   string // that it is in; empty: it is one, or a rate limit
	made   *deed
	gone   []*deed
	fields map[string][]entry
}

// entry is what a field became.
type entry struct {
	by    *deed
	value string
}

// truth is what is known of all things, by their ids.
type truth struct {
	things map[string]*thing
	lost   map[crdt.NodeID]bool // whose disk is
	left   map[crdt.NodeID]int  // who has left, and how many disks were lost when it began to
}

// ordered is the field of what is in an order, which is that of its ids.
const ordered = "order"

// apart is how far the clocks of well nodes may lead apart who was first.
const apart = time.Second

// before reports whether an act was over, and known where another one was begun or long ago, so that that one overrules it.
func (a *deed) before(b *deed) bool {
	if a.everyone || b.everyone {
		return a.everyone && !b.everyone
	}
	return a.answered && a.ended <= b.began && (a.holders[b.at] || !a.wrong && !b.wrong && a.ended+apart <= b.began)
}

// holds reports whether an act must have its effect.
func (t *truth) holds(d *deed) bool {
	if d.everyone {
		return true
	}
	if !d.answered || d.wrong && len(d.holders) == 1 {
		return false
	}
	for id := range d.holders {
		if was, left := t.left[id]; !t.lost[id] && (!left || was == len(t.lost)) { // what a leaver had, a node has that may be lost later
			return true
		}
	}
	return false
}

// allowedOrder is allowed of an order: of acts that ran at once each may have changed it, and only after one that knew of all
// others it is what that has made it.
func (t *truth) allowedOrder(all []entry, value string) bool {
	for _, e := range all {
		knew := func(o entry) bool {
			return o.by == e.by || o.by.everyone || o.by.answered && o.by.ended <= e.by.began && o.by.holders[e.by.at]
		}
		if t.holds(e.by) && !slices.ContainsFunc(all, func(o entry) bool { return !knew(o) }) {
			return e.value == value
		}
	}
	return true
}

// allowed reports whether a field may have a value.
func (t *truth) allowed(all []entry, value string) bool {
	return slices.ContainsFunc(all, func(e entry) bool {
		return e.value == value && !slices.ContainsFunc(all, func(o entry) bool { return t.holds(o.by) && e.by.before(o.by) })
	})
}

// shown is what a catalog has of things: their fields, by their ids.
type shown map[string]map[string]string

// differ returns in what two of them do, in order.
func differ(a, b shown) (at []string) {
	for id, fields := range a {
		if b[id] == nil {
			at = append(at, id)
			continue
		}
		for name, value := range fields {
			if b[id][name] != value {
				at = append(at, fmt.Sprintf("%s of %s: %.20q and %.20q", name, id, value, b[id][name]))
			}
		}
	}
	for id := range b {
		if a[id] == nil {
			at = append(at, id)
		}
	}
	slices.Sort(at)
	return at
}

// judge returns what in a catalog is not as it must be.
func (t *truth) judge(is shown) (broken []string) {
	fail := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	for _, id := range slices.Sorted(maps.Keys(t.things)) {
		x := t.things[id]
		fields, there := is[id]
		if _, has := is[x.room]; x.room != "" && !has {
			continue
		}
		switch i := slices.IndexFunc(x.gone, t.holds); {
		case there && i >= 0:
			fail("%s is there, and %s was answered", id, x.gone[i].name)
			continue
		case !there && len(x.gone) == 0 && t.holds(x.made):
			fail("%s is not there, and %s was answered", id, x.made.name)
			continue
		case !there:
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			may := t.allowed
			if name == ordered {
				may = t.allowedOrder
			}
			if !may(x.fields[name], fields[name]) {
				fail("%s has %s %.20q; %s", id, name, fields[name], said(x.fields[name]))
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(is)) {
		if t.things[id] == nil {
			fail("%s is there, and nobody made it", id)
		}
	}
	return broken
}

func said(all []entry) (text string) {
	for _, e := range all {
		text += fmt.Sprintf("%.20q by %s, ", e.value, e.by.name)
	}
	return text
}
