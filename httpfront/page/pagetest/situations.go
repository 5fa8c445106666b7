// Package pagetest has the situations that a waiting page is tried in.
package pagetest

import (
	"fmt"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// Noon is when all of them are.
var Noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// Situation is what a waiting page is made from.
type Situation struct {
	Settings *room.Settings
	Verdict  *node.Verdict
	Down     bool // the site does not answer
}

// Situations are what a room can be in: every method outside of events, in
// pre-queues and in events, and what there is beside. The visitor came at 11:50 and
// was last counted at 11:59:40. What is told of places and waits is worked out from
// counts as a node does it, by a [room.View]. The result is the caller's.
func Situations() map[string]Situation {
	out := make(map[string]Situation)
	for name, s := range setups() {
		situation, err := s.situation()
		if err != nil {
			panic(fmt.Sprintf("pagetest: %s: %v", name, err))
		}
		out[name] = situation
	}
	return out
}

// setup is what a situation comes from: a full room with a line before it.
type setup struct {
	method   room.Method
	ahead    int64 // who waits and came first
	admitted int64 // in the last five minutes
	queueAll bool
	down     bool
	event    *room.Event   // nil: none
	early    time.Duration // how much before 11:50 the visitor came
}

func setups() map[string]setup {
	const long, day, some, rate = 1234, 299, 40, 102
	before := func(method room.Method, shuffle bool) *room.Event {
		return &room.Event{
			Name: "sale", PrequeueStart: Noon.Add(-15 * time.Minute), Start: Noon.Add(10*time.Minute + time.Second),
			End: Noon.Add(3 * time.Hour), Shuffle: shuffle, QueueingMethod: &method,
		}
	}
	during := func(method room.Method, shuffle bool) *room.Event {
		e := before(method, shuffle)
		e.PrequeueStart, e.Start = Noon.Add(-30*time.Minute), Noon.Add(-20*time.Minute)
		return e
	}
	return map[string]setup{
		"fifo":                       {method: room.FIFO, ahead: long, admitted: rate},
		"fifo without an estimate":   {method: room.FIFO, ahead: 2},
		"fifo for more than a day":   {method: room.FIFO, ahead: day, admitted: 1},
		"random":                     {method: room.Random, ahead: long, admitted: rate},
		"random without an estimate": {method: room.Random, ahead: long},
		"queue all":                  {method: room.FIFO, ahead: long, admitted: rate, queueAll: true},
		"queue all at random":        {method: room.Random, ahead: long, admitted: rate, queueAll: true},
		"site down":                  {method: room.FIFO, ahead: long, admitted: rate, down: true},
		"reject":                     {method: room.Reject},

		"pre-queue that shuffles":            {method: room.FIFO, ahead: some, admitted: rate, event: before(room.FIFO, true)},
		"pre-queue in order":                 {method: room.FIFO, ahead: some, admitted: rate, event: before(room.FIFO, false)},
		"pre-queue of an event at random":    {method: room.FIFO, ahead: some, admitted: rate, event: before(room.Random, false)},
		"pre-queue that lets all in":         {method: room.FIFO, ahead: some, admitted: rate, event: before(room.Passthrough, false)},
		"pre-queue of an event that rejects": {method: room.FIFO, ahead: some, admitted: rate, event: before(room.Reject, false)},
		"pre-queue but came before":          {method: room.FIFO, ahead: long, admitted: rate, event: before(room.FIFO, true), early: 6 * time.Minute},
		"queue all in a pre-queue":           {method: room.FIFO, ahead: some, admitted: rate, event: before(room.FIFO, false), queueAll: true},
		"random in a pre-queue":              {method: room.Random, ahead: some, admitted: rate, event: before(room.Random, false)},
		"random in a pre-queue that shuffles": {
			method: room.Random, ahead: some, admitted: rate,
			event: before(room.Random, true),
		},
		"random in a pre-queue in order":       {method: room.Random, ahead: some, admitted: rate, event: before(room.FIFO, false)},
		"passthrough in a pre-queue":           {method: room.Passthrough, ahead: some, admitted: rate, event: before(room.FIFO, false)},
		"passthrough in a pre-queue at random": {method: room.Passthrough, ahead: some, admitted: rate, event: before(room.Random, false)},
		"reject in a pre-queue":                {method: room.Reject, event: before(room.FIFO, false)},

		"event":                {method: room.FIFO, ahead: long, admitted: rate, event: during(room.FIFO, false)},
		"event at random":      {method: room.FIFO, ahead: long, admitted: rate, event: during(room.Random, true)},
		"event of passthrough": {method: room.Passthrough, ahead: long, admitted: rate, event: during(room.FIFO, false)},
		"event that rejects":   {method: room.Passthrough, event: during(room.Reject, false)},
	}
}

// situation is what a node of the only site comes to.
func (s setup) situation() (Situation, error) {
	const full = 500
	set := room.Settings{
		ID: crdt.RoomID{1}, Name: "shop", QueueingMethod: s.method, QueueAll: s.queueAll, Policy: room.Even,
		TotalActiveUsers: full, NewUsersPerMinute: full,
		SessionDuration: 5 * time.Minute, PlaceKept: 5 * time.Minute, RefreshInterval: 20 * time.Second,
	}.WithDefaults()
	if s.event != nil {
		set.Events = []room.Event{*s.event}
	}
	if err := set.Validate(); err != nil {
		return Situation{}, err
	}
	vis := room.Visitor{Arrival: Noon.Add(-10*time.Minute - s.early), LastPoll: Noon.Add(-20 * time.Second), Refresh: set.RefreshInterval}
	vis.Place = set.Place([]byte("a key"), [16]byte{1}, vis.Arrival)
	first := set.Place([]byte("a key"), [16]byte{2}, vis.Arrival.Add(-time.Minute))
	counts := crdt.Counts{
		Active:   full,
		Waiting:  map[int64]int64{first.Unix(): s.ahead, vis.Place.Unix(): 1},
		Admitted: map[int64]int64{crdt.TickOf(Noon.Add(-5 * time.Minute)): s.admitted},
	}
	view := room.Build(set, room.Input{
		Sites: []room.Site{{Name: "a", Counts: counts, Nodes: 1, Own: true}},
		Nodes: []crdt.NodeID{{1}}, Self: crdt.NodeID{1}, Mine: counts,
	}, Noon)
	v := &node.Verdict{View: view}
	switch action := view.Decide(room.Visitor{}, Noon).Action; {
	case action == room.Refuse:
	case view.Decide(vis, Noon).Action != room.Wait:
		return Situation{}, fmt.Errorf("the visitor does not wait, but is to %v", view.Decide(vis, Noon).Action)
	default:
		v.Pass = node.Pass{Arrival: vis.Arrival, LastPoll: vis.LastPoll}
		v.Refresh = set.RefreshInterval
		v.Estimate, _ = view.Estimate(vis.Place, room.Shown{})
	}
	return Situation{Settings: view.Settings, Verdict: v, Down: s.down}, nil
}
