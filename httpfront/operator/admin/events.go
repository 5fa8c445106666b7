package admin

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/ropeline/ropeline/node/catalog"
)

func (c *Call) oneEvent(e *catalog.Event) Answer {
	return Answer{Result: show(e, eventFields, c.now())}
}

func listEvents(c *Call, r *catalog.Room) (Answer, error) {
	return paged(c, showAll(r.Events, eventFields, c.now()))
}

// readEvent is for an event, and for what holds while it is under way.
func readEvent(detailed bool) Handler {
	return aboutRoom(func(c *Call, r *catalog.Room) (Answer, error) {
		i, err := c.event(r)
		if err != nil {
			return Answer{}, err
		}
		e := r.Events[i]
		if detailed {
			e = details(e, r)
		}
		return c.oneEvent(&e), nil
	})
}

func createEvent(ctx context.Context, c *Call) (Answer, error) {
	var id catalog.ID
	rand.Read(id[:])
	room, err := c.edit(ctx, create, func(r *reader, is *catalog.Room) (part, error) {
		e := decode(r, c.body, eventFields, &catalog.Event{}, nil)
		e.ID, e.Created = id, c.now()
		is.Events = append(is.Events, e)
		return part{"events", len(is.Events) - 1}, nil
	})
	if err != nil {
		return Answer{}, err
	}
	return c.oneEvent(room.Event(id)), nil
}

func changeEvent(m mode) Handler {
	return func(ctx context.Context, c *Call) (Answer, error) {
		var id catalog.ID
		room, err := c.edit(ctx, m, func(r *reader, is *catalog.Room) (part, error) {
			i, err := c.event(is)
			if err != nil {
				return part{}, err
			}
			was := is.Events[i]
			id = was.ID
			blank := catalog.Event{ID: was.ID, Created: was.Created, Modified: was.Modified}
			is.Events[i] = decode(r, c.body, eventFields, &blank, &was)
			return part{"events", i}, nil
		})
		if err != nil {
			return Answer{}, err
		}
		return c.oneEvent(room.Event(id)), nil
	}
}

func deleteEvent(ctx context.Context, c *Call) (Answer, error) {
	var id catalog.ID
	_, err := c.drop(ctx, func(is *catalog.Room) (*catalog.Room, error) {
		i, err := c.event(is)
		if err != nil {
			return nil, err
		}
		id = is.Events[i].ID
		is.Events = slices.Delete(is.Events, i, i+1)
		return is, nil
	})
	return deleted(id.String()), err
}
