package admin

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

func (c *Call) writtenRoom(r *catalog.Room, err error) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	return getRoom(c, r)
}

func listRooms(_ context.Context, c *Call) (Answer, error) {
	zone, err := c.zone()
	if err != nil {
		return Answer{}, err
	}
	cat := c.api.mesh.Catalog()
	rooms := slices.Collect(cat.Rooms())
	if zone != "" {
		rooms = cat.RoomsOf(zone)
	}
	a, err := paged(c, rooms)
	if err != nil {
		return a, err
	}
	all := []members{}
	for _, r := range a.Result.([]*catalog.Room) {
		all = append(all, show(r, roomFields(), c.now()))
	}
	a.Result = all
	return a, nil
}

func getRoom(c *Call, r *catalog.Room) (Answer, error) {
	return Answer{Result: show(r, roomFields(), c.now())}, nil
}

func createRoom(ctx context.Context, c *Call) (Answer, error) {
	return c.writtenRoom(c.add(ctx))
}

// changeRoom is for PUT and PATCH.
func changeRoom(m mode) Handler {
	return func(ctx context.Context, c *Call) (Answer, error) {
		return c.writtenRoom(c.edit(ctx, m, func(r *reader, is *catalog.Room) (part, error) {
			was := is.Clone()
			blank := newRoom()
			blank.Zone, blank.Created, blank.Modified, blank.Incomplete = was.Zone, was.Created, was.Modified, was.Incomplete
			blank.Settings.ID, blank.Events, blank.Rules = was.Settings.ID, was.Events, was.Rules
			*is = decode(r, c.body, roomFields(), blank, was)
			return part{}, nil
		}))
	}
}

func deleteRoom(ctx context.Context, c *Call) (Answer, error) {
	var id crdt.RoomID
	_, err := c.drop(ctx, func(is *catalog.Room) (*catalog.Room, error) {
		id = is.Settings.ID
		return nil, nil
	})
	return deleted(id.String()), err
}

func deleted(id string) Answer { return Answer{Result: members{{"id", id}}} }

func roomStatus(c *Call, r *catalog.Room) (Answer, error) {
	state, served := c.api.mesh.Room(r.Settings.ID, c.api.cfg.Now())
	if !served {
		state = RoomState{Status: "not_queueing", Wait: -1}
		if r.Settings.Suspended {
			state.Status = "suspended"
		}
		c.messages = append(c.messages, Mistake{Code: CodeNotServed, Message: "this node does not run the room (yet); rooms_refused of /api/v1/status says what is in its way, if anything is"})
	}
	event := ""
	for i := range r.Events {
		if r.Events[i].Name == state.Event {
			event = r.Events[i].ID.String()
		}
	}
	var minutes any // null: nobody can tell
	if state.Wait >= 0 {
		minutes = int64((state.Wait + time.Minute - 1) / time.Minute)
	}
	return Answer{Result: members{
		{"status", state.Status},
		{"event_id", event},
		{"estimated_queued_users", state.Waiting},
		{"estimated_total_active_users", state.Active},
		{"max_estimated_time_minutes", minutes},
		{"served", served},
	}}, nil
}

// preview keeps a page for a while. What is wrong with it is found out first.
func preview(_ context.Context, c *Call) (Answer, error) {
	r := &reader{mode: create, body: c.body}
	p := decode(r, c.body, previewFields, &previewed{}, nil)
	if len(r.mistakes) == 0 {
		alone := &catalog.Room{Settings: room.Settings{Front: room.Front{CustomPage: p.html}}}
		for _, err := range pageErrors(alone, c.api.mesh.Check) {
			m := r.mistakeOf(err, alone, part{})
			if m.Field == "custom_page_html" {
				m.Field, m.Message = "custom_html", "custom_html"+m.Message[len(m.Field):]
			}
			r.mistakes = append(r.mistakes, m)
		}
	}
	if len(r.mistakes) > 0 {
		return Answer{}, bad(r.mistakes...)
	}
	path, err := c.api.mesh.Preview(p.html)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Result: members{{"preview_url", c.Origin + path}}}, nil
}

// pageErrors returns what is wrong with the page of a room.
func pageErrors(r *catalog.Room, check func(*room.Settings) error) (all []error) {
	s := r.Whole()
	var none catalog.Catalog
	for _, err := range leaves(errors.Join(none.Check(r, nil), check(&s))) {
		if fe, ok := errors.AsType[*room.FieldError](err); ok && fe.Field == "custom-page-html" {
			all = append(all, err)
		}
	}
	return all
}
