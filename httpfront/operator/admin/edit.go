package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/nearest"
)

// zone returns the zone that a request is about: in the dialect that of the path, here
// that of the query. Empty: none was named.
func (c *Call) zone() (string, error) {
	zone := c.params["zone"]
	if zone == "" {
		zone = c.Query.Get("zone")
		if zone == "" && !c.Query.Has("zone") {
			return "", nil
		}
	}
	if !catalog.IsZoneName(zone) {
		return "", bad(refused(CodeRefused, "zone", value{kind: kindText, text: zone}, fmt.Sprintf("1 to %d letters, digits, '-', '_' or '.'", catalog.MaxZone)))
	}
	return zone, nil
}

// room returns the room that a request is about, by its id or by its name. Where no zone
// is named, the name has to be unique in all zones.
func (c *Call) room(cat *catalog.Catalog) (*catalog.Room, error) {
	zone, err := c.zone()
	if err != nil {
		return nil, err
	}
	given := c.params["room"]
	if id, err := crdt.ParseRoomID(given); err == nil {
		if r := cat.Room(id); r != nil && (zone == "" || r.Zone == zone) {
			return r, nil
		}
	}
	var found *catalog.Room
	var zones, ids, names []string
	for r := range cat.Rooms() {
		if !c.dialect && (zone == "" || r.Zone == zone) {
			names = append(names, r.Settings.Name)
		}
		if !c.dialect && r.Settings.Name == given && (zone == "" || r.Zone == zone) {
			found = r
			zones, ids = append(zones, r.Zone), append(ids, r.Settings.ID.String())
		}
	}
	switch {
	case len(slices.Compact(slices.Clone(zones))) < len(zones): // made at several nodes at once; they are in the order of zones
		return nil, Refuse(http.StatusConflict, CodeSeveral, "several rooms of one zone are called %q; ask for one of them by its id: %s", given, strings.Join(ids, ", "))
	case len(zones) > 1:
		return nil, Refuse(http.StatusConflict, CodeSeveral, "several rooms are called %q; add ?zone= with one of %s", given, strings.Join(zones, ", "))
	case found == nil && zone != "":
		return nil, Refuse(http.StatusNotFound, CodeNoRoom, "there is no room %q in the zone %q%s", shorten(given), zone, meant(given, names))
	case found == nil:
		return nil, Refuse(http.StatusNotFound, CodeNoRoom, "there is no room %q%s", shorten(given), meant(given, names))
	}
	return found, nil
}

// meant asks for the one of some names that was probably meant; if there is none it is empty.
func meant(given string, names []string) string {
	if near, ok := nearest.Name(shorten(given), names); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// event returns the place of the event of r that a request is about.
func (c *Call) event(r *catalog.Room) (int, error) {
	id, err := catalog.ParseID(c.params["event"])
	i := slices.IndexFunc(r.Events, func(e catalog.Event) bool { return e.ID == id })
	if err != nil || i < 0 {
		return 0, Refuse(http.StatusNotFound, CodeNoEvent, "the room %q has no event %q", r.Settings.Name, shorten(c.params["event"]))
	}
	return i, nil
}

// rule is event for rules.
func (c *Call) rule(r *catalog.Room) (int, error) {
	id, err := catalog.ParseID(c.params["rule"])
	i := slices.IndexFunc(r.Rules, func(r catalog.Rule) bool { return r.ID == id })
	if err != nil || i < 0 {
		return 0, Refuse(http.StatusNotFound, CodeNoRule, "the room %q has no rule %q", r.Settings.Name, shorten(c.params["rule"]))
	}
	return i, nil
}

// write is Mesh.Edit; whose disks do not have it yet, the answer says.
func (c *Call) write(ctx context.Context, edit func(*catalog.Catalog) ([]catalog.Write, error)) (err error) {
	c.notYetAt, err = c.api.mesh.Edit(ctx, edit)
	return err
}

// edit has a room become what change makes of a copy of it, if that can be, and returns
// it. change says which part of the room the fields of the request are about.
func (c *Call) edit(ctx context.Context, m mode, change func(r *reader, is *catalog.Room) (part, error)) (*catalog.Room, error) {
	var is *catalog.Room
	err := c.write(ctx, func(cat *catalog.Catalog) ([]catalog.Write, error) {
		was, err := c.room(cat)
		if err != nil {
			return nil, err
		}
		is = was.Clone()
		r := &reader{mode: m, body: c.body}
		about, err := change(r, is)
		if err != nil {
			return nil, err
		}
		r.checked(newLeaves(cat.Check(was, c.api.mesh.Check), cat.Check(is, c.api.mesh.Check)), is, about)
		if len(r.mistakes) > 0 {
			return nil, bad(r.mistakes...)
		}
		c.messages = r.messages
		return cat.Writes(was, is), nil
	})
	return c.written(is, err)
}

// add is edit for a room that is new.
func (c *Call) add(ctx context.Context) (*catalog.Room, error) {
	zone, err := c.zone()
	if err != nil {
		return nil, err
	}
	zone = cmp.Or(zone, catalog.DefaultZone)
	var id crdt.RoomID
	rand.Read(id[:])
	var is catalog.Room
	err = c.write(ctx, func(cat *catalog.Catalog) ([]catalog.Write, error) {
		r := &reader{mode: create, body: c.body}
		is = decode(r, c.body, roomFields(), newRoom(), nil)
		is.Zone, is.Settings.ID, is.Created = zone, id, c.now()
		r.checked(leaves(cat.Check(&is, c.api.mesh.Check)), &is, part{})
		if len(r.mistakes) > 0 {
			return nil, bad(r.mistakes...)
		}
		c.messages = r.messages
		return cat.Writes(nil, &is), nil
	})
	return c.written(&is, err)
}

// drop is edit for what is only taken away, and looks no further: that makes nothing worse,
// and a room in which something is wrong is mended that way. change returns nil to drop the
// whole room.
func (c *Call) drop(ctx context.Context, change func(is *catalog.Room) (*catalog.Room, error)) (*catalog.Room, error) {
	var is *catalog.Room
	err := c.write(ctx, func(cat *catalog.Catalog) ([]catalog.Write, error) {
		was, err := c.room(cat)
		if err != nil {
			return nil, err
		}
		if is, err = change(was.Clone()); err != nil {
			return nil, err
		}
		return cat.Writes(was, is), nil
	})
	return c.written(is, err)
}

// now returns the time, as finely as answers have it.
func (c *Call) now() time.Time { return c.api.cfg.Now().UTC().Truncate(time.Millisecond) }

// written returns a room as it was written, with the times of its changes as the catalog
// has them. If somebody else has changed it meanwhile, or the catalog does not show it yet,
// it is answered as this request has left it.
func (c *Call) written(is *catalog.Room, err error) (*catalog.Room, error) {
	if err != nil || is == nil {
		return nil, err
	}
	cat := c.api.mesh.Catalog()
	if got := cat.Room(is.Settings.ID); got != nil && len(cat.Writes(got, is)) == 0 {
		return got, nil
	}
	is.Modified = c.now()
	return is, nil
}
