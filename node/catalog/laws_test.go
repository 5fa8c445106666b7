package catalog

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// The laws of a catalog that several nodes write at once: an act that was done has its effect or
// was overruled by a later one, nothing that was deleted comes back, and nothing is half there.

// acted is what one act wanted of something: that a field has a value, or that a thing is gone.
type acted struct {
	field, value string
	at           crdt.Stamp // of the last write of the act
}

// mesh is a few nodes that hear each other's writes late.
type mesh struct {
	t     *testing.T
	rng   *rand.Rand
	nodes []*store
	log   []acted
	dead  map[string]bool // things that were deleted
	made  int
}

func newMesh(t *testing.T, seed uint64, nodes int) *mesh {
	m := &mesh{t: t, rng: rand.New(rand.NewPCG(seed, 11)), dead: map[string]bool{}}
	for i := range nodes {
		n := newStore(byte(i + 1))
		n.now = n.now.Add(time.Duration(m.rng.IntN(400)) * time.Millisecond) // clocks differ
		m.nodes = append(m.nodes, n)
	}
	return m
}

// write has a node write what an act comes to, and notes what the act wanted.
func (m *mesh) write(n *store, writes []Write, wants ...string) {
	n.now = n.now.Add(time.Duration(1+m.rng.IntN(50)) * time.Millisecond)
	for _, w := range writes {
		if err := n.Set(w.Key, w.Value, n.clock.Now(n.now, n.node)); err != nil {
			m.t.Fatal(err)
		}
	}
	for i := 0; i < len(wants); i += 2 {
		m.log = append(m.log, acted{wants[i], wants[i+1], n.Newest()})
	}
}

// hear has a node hear a part of what another one knows, in pieces that are cut anywhere.
func (m *mesh) hear(n, o *store, all bool) {
	limit := 0
	if !all {
		limit = 150 + m.rng.IntN(2000)
	}
	delta := o.Delta(n.Digest(), limit)
	m.rng.Shuffle(len(delta.Pieces), func(i, j int) { delta.Pieces[i], delta.Pieces[j] = delta.Pieces[j], delta.Pieces[i] })
	now := o.now
	for _, o := range m.nodes {
		now = later(now, o.now) // whose writes o may have heard
	}
	if delta.Whole {
		if _, err := n.ApplyWhole(delta.Pieces, &n.clock, now); err != nil {
			m.t.Fatal(err)
		}
		return
	}
	for _, p := range delta.Pieces { // those that hide more than n knows are left aside
		if _, err := n.Apply(p, &n.clock, now); err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m *mesh) as(n *store) *Catalog { return Read(n).By(n.node, n.NewestOf(n.node)) }

// act has an operator do something at a node.
func (m *mesh) act(n *store) {
	c := m.as(n)
	rooms := slices.Collect(c.Rooms())
	if len(rooms) == 0 || m.rng.IntN(8) == 0 {
		m.made++
		r := plain(m.made)
		r.Events, r.Rules = []Event{plainEvent(1)}, []Rule{plainRule(1), plainRule(2)}
		r.Settings.Front.CustomPage = fmt.Sprint("page of ", m.made)
		m.write(n, c.Writes(nil, r))
		return
	}
	was := rooms[m.rng.IntN(len(rooms))]
	is, id := was.Clone(), was.Settings.ID.String()
	if m.rng.IntN(8) == 0 {
		m.dead[roomKey(was.Settings.ID)] = true
		m.write(n, c.Writes(was, nil))
		return
	}
	value := m.rng.IntN(1000) + 1
	field, text := "", fmt.Sprint(value)
	switch m.rng.IntN(8) {
	case 0:
		field, is.Settings.TotalActiveUsers = "total", value
	case 1:
		field, is.Settings.NewUsersPerMinute = "rate", value
	case 2:
		field, is.Settings.Front.CustomPage = "page", text
	case 3:
		field, is.Settings.Front.Message = "message", text
	case 4:
		field, text = "queue all", fmt.Sprint(!was.Settings.QueueAll)
		is.Settings.QueueAll = !was.Settings.QueueAll
	case 5:
		if len(is.Events) > 0 {
			field = "event page"
			is.Events[0].CustomPage = &text
		}
	case 6:
		if len(is.Events) > 0 && m.rng.IntN(3) == 0 {
			m.dead[eventKey(was.Settings.ID, is.Events[0].ID)] = true
			is.Events = is.Events[1:]
		} else if len(is.Events) > 0 {
			field, is.Events[0].Description = "event description", text
		}
	case 7:
		m.rng.Shuffle(len(is.Rules), func(i, j int) { is.Rules[i], is.Rules[j] = is.Rules[j], is.Rules[i] })
	}
	writes := c.Writes(was, is)
	if len(writes) == 0 || field == "" {
		m.write(n, writes)
		return
	}
	m.write(n, writes, id+"/"+field, text)
}

// fieldsOf returns what the acts of a mesh are about.
func fieldsOf(c *Catalog) map[string]string {
	all := map[string]string{}
	for r := range c.Rooms() {
		id, s := r.Settings.ID.String(), &r.Settings
		all[id+"/total"], all[id+"/rate"] = fmt.Sprint(s.TotalActiveUsers), fmt.Sprint(s.NewUsersPerMinute)
		all[id+"/page"], all[id+"/message"], all[id+"/queue all"] = s.Front.CustomPage, s.Front.Message, fmt.Sprint(s.QueueAll)
		for _, e := range r.Events {
			if all[id+"/event description"] = e.Description; e.CustomPage != nil {
				all[id+"/event page"] = *e.CustomPage
			}
		}
	}
	return all
}

// sound fails where a catalog has something that is not whole.
func (m *mesh) sound(c *Catalog, when string) {
	for r := range c.Rooms() {
		if err := r.Whole().Validate(); err != nil || r.Settings.Host == "" || r.Settings.Name == "" {
			m.t.Fatalf("%s: a room is half there: %v: %+v", when, err, r)
		}
		for _, rule := range r.Rules {
			if rule.Expression == "" {
				m.t.Fatalf("%s: a rule is half there: %+v", when, rule)
			}
		}
	}
}

// TestActsHoldOrAreOverruled has operators act at random nodes, which hear each other late and in
// pieces, and compares what all come to with what the last act on each field wanted.
func TestActsHoldOrAreOverruled(t *testing.T) {
	for seed := range uint64(80) {
		m := newMesh(t, seed, 2+int(seed%4))
		for range 30 {
			n := m.nodes[m.rng.IntN(len(m.nodes))]
			switch m.rng.IntN(5) {
			case 0, 1:
				m.hear(n, m.nodes[m.rng.IntN(len(m.nodes))], m.rng.IntN(2) == 0)
				m.sound(Read(n), fmt.Sprint("seed ", seed))
			case 2:
				n.collect(t)
			default:
				m.act(n)
			}
		}
		for range len(m.nodes) {
			for _, n := range m.nodes {
				for _, o := range m.nodes {
					m.hear(n, o, true)
				}
			}
		}
		last := map[string]acted{}
		for _, a := range m.log {
			if a.at.Compare(last[a.field].at) > 0 {
				last[a.field] = a
			}
		}
		first := Read(m.nodes[0])
		got := fieldsOf(first)
		for field, a := range last {
			if is, there := got[field]; there && is != a.value {
				t.Fatalf("seed %d: %s is %q, and the last act that was done wants %q", seed, field, is, a.value)
			}
		}
		for r := range first.Rooms() {
			if m.dead[roomKey(r.Settings.ID)] {
				t.Fatalf("seed %d: room %s was deleted, and is there", seed, r.Settings.Name)
			}
			if r.Incomplete != "" {
				t.Fatalf("seed %d: the page of %q in room %s is lost", seed, r.Incomplete, r.Settings.Name)
			}
			for _, e := range r.Events {
				if m.dead[eventKey(r.Settings.ID, e.ID)] {
					t.Fatalf("seed %d: an event of room %s was deleted, and is there", seed, r.Settings.Name)
				}
			}
		}
		for i := 1; i <= m.made; i++ {
			if id := plain(i).Settings.ID; first.Room(id) == nil && !m.dead[roomKey(id)] {
				t.Fatalf("seed %d: room %d was made, and is gone", seed, i)
			}
		}
		for _, n := range m.nodes[1:] {
			if c := Read(n); !reflect.DeepEqual(c.order, first.order) {
				t.Fatalf("seed %d: nodes 1 and %d read\n%+v\nand\n%+v", seed, n.node[0], first.order, c.order)
			}
		}
	}
}

// TestDeletionIsFinal has something deleted at one node, and then changed or brought by its file at another
// that has not heard.
func TestDeletionIsFinal(t *testing.T) {
	rule := limit.Rule{Name: "logins", Expression: "true", Period: time.Minute, RequestsPerPeriod: 5}
	for _, file := range []bool{false, true} {
		a, b := newStore(1), newStore(2)
		r, limits := plain(1), FileLimits([]limit.Rule{rule}, begin)
		r.Events, r.Rules = []Event{plainEvent(1), plainEvent(2)}, []Rule{plainRule(1), plainRule(2)}
		if file {
			s := r.Whole()
			r = FileRoom(DefaultZone, "", s, begin)
		} else {
			limits[0].file = false
		}
		a.write(t, append(Read(a).Writes(nil, r), Read(a).LimitWrites(nil, limits)...))
		b.hear(a)
		was := Read(a)
		half, room, limits := was.Room(r.Settings.ID).Clone(), was.Room(r.Settings.ID), was.RateLimits()
		half.Events, half.Rules = half.Events[1:], half.Rules[1:]
		a.write(t, append(was.Writes(room, half), was.LimitWrites(limits, nil)...))

		// b changes all of these later, and a new node brings what its file has.
		b.now = a.now.Add(time.Second)
		changed := room.Clone()
		changed.Events[0].Description, changed.Rules[0].Description = "late", "late"
		late := Read(b).RateLimits()
		late[0].RequestsPerPeriod = 9
		b.write(t, append(Read(b).Writes(room, changed), Read(b).LimitWrites(limits, late)...))
		fresh := newStore(3)
		fresh.now = b.now.Add(time.Second)
		if file {
			fresh.write(t, append(Read(fresh).Writes(nil, r), Read(fresh).LimitWrites(nil, limits)...))
		}
		both := func() *Catalog {
			for range 2 {
				for _, n := range []*store{a, b, fresh} {
					for _, o := range []*store{a, b, fresh} {
						n.hear(o)
					}
				}
			}
			return Read(a)
		}
		c := both()
		if got := c.Room(r.Settings.ID); got == nil || len(got.Events) != 1 || len(got.Rules) != 1 || len(c.RateLimits()) != 0 {
			t.Fatalf("from a file: %v: after parts were deleted and changed: %+v, %+v", file, got, c.RateLimits())
		}
		if is := c.BringLimits(FileLimits([]limit.Rule{rule}, begin), nil); file && len(is) != 0 {
			t.Errorf("a new node's file brings %+v back", is)
		}
		a.write(t, c.Writes(c.Room(r.Settings.ID), nil))
		b.now = a.now.Add(time.Second)
		was = Read(b)
		changed = was.Room(r.Settings.ID).Clone()
		changed.Description, changed.Rules = "late", append(changed.Rules, plainRule(9))
		b.write(t, was.Writes(was.Room(r.Settings.ID), changed))
		if c = both(); c.Len() != 0 {
			t.Errorf("from a file: %v: a deleted room is there: %+v", file, c.order[0])
		}
		for _, n := range []*store{a, b, fresh} {
			n.collect(t)
		}
		both()
		for key := range a.Keys() {
			if !file {
				t.Errorf("%s is left of what is deleted", key)
			}
		}
	}
}

// TestNothingIsHalfThere cuts what makes and changes things at every place.
func TestNothingIsHalfThere(t *testing.T) {
	r := plain(1)
	r.Settings.Front.CustomPage = "a page"
	r.Events, r.Rules = []Event{plainEvent(1)}, []Rule{plainRule(1), plainRule(2)}
	r.Events[0].CustomPage = new("another page")
	s := newStore(1)
	for i, w := range Read(s).Writes(nil, r) {
		if got := Read(s).Room(r.Settings.ID); got != nil {
			t.Fatalf("a room is there after %d writes: %+v", i, got)
		}
		s.write(t, []Write{w})
	}
	was := Read(s).Room(r.Settings.ID)
	is := was.Clone()
	is.Settings.Front.CustomPage, is.Events[0].CustomPage = "a page more", new("the other page")
	is.Rules = append(is.Rules, plainRule(3))
	for _, w := range Read(s).Writes(was, is) {
		s.write(t, []Write{w})
		if got := Read(s).Room(r.Settings.ID); got.Incomplete != "" || len(got.Rules) < 2 {
			t.Fatalf("after %s: %+v", w.Key, got)
		}
	}
	for i, w := range Read(s).Writes(Read(s).Room(r.Settings.ID), nil) {
		s.write(t, []Write{w})
		if got := Read(s).Room(r.Settings.ID); got != nil {
			t.Fatalf("a room is there after %d writes that delete it: %+v", i+1, got)
		}
	}
}

// TestAnyMixtureOfSoundRoomsIsSound takes each unit of any of some rooms that are sound.
func TestAnyMixtureOfSoundRoomsIsSound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	cookies := []room.CookieAttributes{{}, {SameSite: room.SameSiteNone, Secure: room.SecureAlways, Partitioned: true}, {SameSite: room.SameSiteLax, Secure: room.SecureNever}}
	two, nine := 2, 9
	var rooms []*Room
	for i, c := range cookies {
		r := plain(i)
		s := &r.Settings
		s.Front.Cookie, s.Front.Sharing = c, []room.Sharing{{}, {Action: room.SharedLog, Addresses: 3}, {Action: room.SharedQueue, Addresses: 6}}[i]
		s.Path = []string{"/", "/z", "/a"}[i]
		if i > 0 {
			s.CookieSuffix, s.AdditionalRoutes = "s", []room.Route{{Host: s.Host, Path: []string{"", "/y", "/z"}[i]}}
		}
		e := plainEvent(1)
		e.Start, e.End = e.Start.Add(time.Duration(i)*48*time.Hour), e.End.Add(time.Duration(i)*48*time.Hour)
		switch i {
		case 1:
			e.PrequeueStart, e.Shuffle = e.Start.Add(-time.Hour), true
		case 2:
			e.TotalActiveUsers, e.NewUsersPerMinute = &two, &nine
		}
		r.Events = []Event{e}
		rooms = append(rooms, r)
	}
	for range 500 {
		mixed := freshRoom()
		for i := range roomUnits {
			roomUnits[i].set(&mixed, roomUnits[i].value(rooms[rng.IntN(len(rooms))]))
		}
		e := Event{}
		for i := range eventUnits {
			eventUnits[i].set(&e, eventUnits[i].value(&rooms[rng.IntN(len(rooms))].Events[0]))
		}
		mixed.Events = []Event{e}
		if err := mixed.Whole().Validate(); err != nil {
			t.Fatalf("of sound rooms is mixed one that is not: %v: %+v", err, mixed)
		}
	}
}

// TestAChangeLeavesRanksAlone: two operators each added rules at once, which so have the same ranks. Who changes something
// else says nothing of their order, which a third one may have changed meanwhile.
func TestAChangeLeavesRanksAlone(t *testing.T) {
	rule := func(i int, rank int64) Rule {
		r := plainRule(i)
		r.rank = rank
		return r
	}
	was := []Rule{rule(1, rankStep), rule(2, rankStep), rule(3, 2*rankStep), rule(4, 2*rankStep), rule(5, 3*rankStep)}
	list := listedRules(plain(1).Settings.ID)
	for i, r := range ranked(was, was, list.at, list.key) {
		if r.rank != was[i].rank {
			t.Errorf("rule %d has rank %d, and had %d", i+1, r.rank, was[i].rank)
		}
	}
	added := slices.Insert(slices.Clone(was), 1, plainRule(6)) // between two that have the same
	got := ranked(was, added, list.at, list.key)
	again := slices.Clone(got)
	inOrder(again, list.at, func(r *Rule) time.Time { return r.Created }, list.key)
	if !slices.EqualFunc(got, again, func(a, b Rule) bool { return a.ID == b.ID }) {
		t.Errorf("one added between two others is elsewhere: %v, want %v", again, got)
	}
}
