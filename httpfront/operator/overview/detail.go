package overview

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

// detail returns one room; set is what operators have set of it, nil where the room is not
// in the catalog.
func (s *seen) detail(id crdt.RoomID, set *catalog.Room, v *room.View, now time.Time) dashboard.Detail {
	own := v.Settings
	if set != nil {
		own = &set.Settings
	}
	d := dashboard.Detail{
		ID: id.String(), Time: now,
		Settings:       dashboard.Settings{TotalActiveUsers: int64(own.TotalActiveUsers), NewUsersPerMinute: int64(own.NewUsersPerMinute)},
		SessionSeconds: v.Settings.SessionDuration.Seconds(),
		Buckets:        []dashboard.Bucket{}, Sites: s.shares(id, v), Events: []dashboard.Event{},
	}
	for _, b := range v.Buckets {
		if b.Waiting > 0 {
			d.Buckets = append(d.Buckets, dashboard.Bucket{Arrived: time.Unix(b.Start, 0).UTC(), Seconds: v.Settings.BucketSpan.Seconds(), Waiting: int64(b.Waiting)})
		}
	}
	if !v.Cursor.IsZero() {
		d.Cursor = new(v.Cursor.UTC())
	}
	if set == nil {
		for i := range v.Settings.Events {
			d.Events = append(d.Events, eventOf(&v.Settings.Events[i], "", v))
		}
		return d
	}
	for i := range set.Events {
		d.Events = append(d.Events, eventOf(&set.Events[i].Event, set.Events[i].ID.String(), v))
	}
	return d
}

func eventOf(e *room.Event, id string, v *room.View) dashboard.Event {
	now := v.Event.Name == e.Name && v.Event.Start.Equal(e.Start)
	shown := dashboard.Event{
		ID: id, Name: e.Name, Active: now && v.Event.Active, Prequeueing: now && v.Event.Prequeueing,
		Shuffle: e.Shuffle, Suspended: e.Suspended, Start: e.Start.UTC(), End: e.End.UTC(),
	}
	if !e.PrequeueStart.IsZero() {
		shown.PrequeueStart = new(e.PrequeueStart.UTC())
	}
	if e.TotalActiveUsers != nil {
		shown.TotalActiveUsers = int64(*e.TotalActiveUsers)
	}
	if e.NewUsersPerMinute != nil {
		shown.NewUsersPerMinute = int64(*e.NewUsersPerMinute)
	}
	if e.QueueingMethod != nil {
		shown.QueueingMethod = string(*e.QueueingMethod)
	}
	return shown
}

// shares returns what each site has of a room.
func (s *seen) shares(id crdt.RoomID, v *room.View) []dashboard.SiteShare {
	sites := []dashboard.SiteShare{}
	for i := range v.Sites {
		p := &v.Sites[i]
		share := dashboard.SiteShare{Site: p.Name, Active: int64(p.Active), Waiting: int64(p.Waiting), Frozen: p.Frozen}
		if v.Settings.Policy == room.Escrow {
			share.Rights = &dashboard.Rights{}
		}
		sites = append(sites, share)
	}
	for _, r := range s.alive() {
		for i := range sites {
			if sites[i].Site != r.Site {
				continue
			}
			if slices.Contains(r.Leads, id.String()) {
				sites[i].Counter = r.Node.Node
			}
			for k := range r.Rooms {
				if of := &r.Rooms[k]; of.Room == id && sites[i].Rights != nil {
					add(sites[i].Rights, &of.Rights)
				}
			}
		}
	}
	return sites
}
