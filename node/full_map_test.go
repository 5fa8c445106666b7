package node

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
)

// TestAFullMapKeepsNoOperatorOut fills a map with what is new and deleted again, and with what nodes say.
// Every act on what there is goes on being taken, and what is new is refused as a whole.
func TestAFullMapKeepsNoOperatorOut(t *testing.T) {
	m := newLargeMesh(t, 3, 1)
	edit := func(change func(c *catalog.Catalog) (was, is *catalog.Room)) error {
		err := m.core.Edit(func(c *catalog.Catalog) ([]catalog.Write, error) {
			was, is := change(c)
			return c.Writes(was, is), nil
		}, m.now)
		m.run(100 * time.Millisecond)
		return err
	}
	first, second := m.core.order[0].id, m.core.order[1].id
	another := func(c *catalog.Catalog) (was, is *catalog.Room) {
		is = c.Room(first).Clone()
		is.Settings.ID, is.Settings.Name, is.Settings.Host = crdt.RoomID{9, 9}, "another", "another.example"
		return nil, is
	}
	fill := func(as crdt.Weight) {
		for size, n := 1<<10, 0; size > 0; n++ {
			batch := make([]crdt.Write, size)
			for i := range batch {
				batch[i] = crdt.Write{Key: fmt.Sprintf("event/%032x/%d-%d", i, as, n)}
			}
			if m.core.replica.SetAll(batch, as, m.now) != nil {
				size /= 2
			}
		}
	}
	fill(crdt.New)
	m.run(time.Second)
	for _, full := range []string{"of what is new", "of what nodes say"} {
		before := m.core.replica.MapChanges()
		if err := edit(another); !errors.Is(err, ErrMapFull) || m.core.replica.MapChanges() != before {
			t.Errorf("full %s: a room that is made: %v, and %d writes", full, err, m.core.replica.MapChanges()-before)
		}
		for what, change := range map[string]func(is *catalog.Room){
			"suspended":    func(is *catalog.Room) { is.Settings.Suspended = !is.Settings.Suspended },
			"queue_all":    func(is *catalog.Room) { is.Settings.QueueAll = !is.Settings.QueueAll },
			"a limit":      func(is *catalog.Room) { is.Settings.TotalActiveUsers-- },
			"a page":       func(is *catalog.Room) { is.Settings.Front.CustomPage = "a page, " + full },
			"no page":      func(is *catalog.Room) { is.Settings.Front.CustomPage = "" },
			"another path": func(is *catalog.Room) { is.Settings.Path += "/further" },
		} {
			err := edit(func(c *catalog.Catalog) (was, is *catalog.Room) {
				was = c.Room(first)
				is = was.Clone()
				change(is)
				return was, is
			})
			if err != nil {
				t.Errorf("full %s: %s: %v", full, what, err)
			}
		}
		id := first
		if full == "of what is new" {
			id = second
			fill(crdt.Fact)
			m.run(time.Second)
		}
		if err := edit(func(c *catalog.Catalog) (was, is *catalog.Room) { return c.Room(id), nil }); err != nil || m.core.Catalog().Room(id) != nil {
			t.Errorf("full %s: a room that is deleted: %v", full, err)
		}
	}
}
