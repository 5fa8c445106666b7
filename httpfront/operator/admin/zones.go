package admin

import (
	"context"

	"github.com/ropeline/ropeline/node/catalog"
)

func (c *Call) oneZone(name string, z catalog.Zone) Answer {
	if c.dialect {
		return Answer{Result: show(&z, zoneFields, c.now())}
	}
	return Answer{Result: c.zoneMembers(c.api.mesh.Catalog(), name)}
}

func (c *Call) zoneMembers(cat *catalog.Catalog, name string) members {
	z := cat.Zone(name)
	return append(members{{"zone", name}, {"rooms", len(cat.RoomsOf(name))}}, show(&z, zoneFields, c.now())...)
}

// listZones lists those that have a room or settings.
func listZones(_ context.Context, c *Call) (Answer, error) {
	cat := c.api.mesh.Catalog()
	all := []members{}
	for _, name := range cat.Zones() {
		all = append(all, c.zoneMembers(cat, name))
	}
	return paged(c, all)
}

func getZone(_ context.Context, c *Call) (Answer, error) {
	name, err := c.zone()
	if err != nil {
		return Answer{}, err
	}
	return c.oneZone(name, c.api.mesh.Catalog().Zone(name)), nil
}

func changeZone(m mode) Handler {
	return func(ctx context.Context, c *Call) (Answer, error) {
		name, err := c.zone()
		if err != nil {
			return Answer{}, err
		}
		var is catalog.Zone
		err = c.write(ctx, func(cat *catalog.Catalog) ([]catalog.Write, error) {
			was := cat.Zone(name)
			r := &reader{mode: m, body: c.body}
			is = decode(r, c.body, c.zoneFields(), &catalog.Zone{}, &was)
			switch {
			case len(r.mistakes) > 0:
				return nil, bad(r.mistakes...)
			case is == was:
				return nil, nil
			}
			return catalog.ZoneWrites(name, is), nil
		})
		return c.oneZone(name, is), err
	}
}

// zoneFields are those that a zone has here; SDKs may send back what they were given.
func (c *Call) zoneFields() []field[catalog.Zone] {
	if c.dialect {
		return zoneFields
	}
	return ownZoneFields
}

var ownZoneFields = append([]field[catalog.Zone]{
	readOnly[catalog.Zone]("zone", "Its name.", Schema{"type": "string"}, nil),
	readOnly[catalog.Zone]("rooms", "How many rooms it has.", Schema{"type": "integer"}, nil),
}, zoneFields...)
