// Package pagetest has the situations that a waiting page is tried in.
package pagetest

import (
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
}

// Situations are what a room can be in: every method outside of events, in
// pre-queues and in events, and what there is beside. The visitor came at 11:50 and
// was last counted at 11:59:40.
func Situations() map[string]Situation {
	base := func(method room.Method, e room.Estimate, event room.EventState) Situation {
		settings := room.Settings{
			ID: crdt.RoomID{1}, Name: "shop", QueueingMethod: method,
			SessionDuration: 5 * time.Minute, PlaceKept: 5 * time.Minute, RefreshInterval: 20 * time.Second,
		}
		return Situation{
			Settings: &settings,
			Verdict: &node.Verdict{
				Pass:     node.Pass{Arrival: Noon.Add(-10 * time.Minute), LastPoll: Noon.Add(-20 * time.Second)},
				Estimate: e, Refresh: 20 * time.Second,
				View: &room.View{Event: event, Settings: settings, AdmittedMinute: float64(e.Ahead) / float64(max(1, e.Minutes))},
			},
		}
	}
	place := room.Estimate{Known: true, Minutes: 61, Position: 1235, Ahead: 1234}
	chance := room.Estimate{Known: true, Minutes: 9, P25: 5, P75: 72}
	sale := room.EventState{
		Name: "sale", PrequeueStart: Noon.Add(-15 * time.Minute), Start: Noon.Add(10*time.Minute + time.Second), End: Noon.Add(3 * time.Hour),
	}
	before, during := sale, sale
	before.Prequeueing, before.Shuffle = true, true
	during.Active, during.Start = true, Noon.Add(-time.Minute)
	inOrder := before
	inOrder.Shuffle = false
	out := map[string]Situation{
		"fifo":                       base(room.FIFO, place, room.EventState{}),
		"fifo without an estimate":   base(room.FIFO, room.Estimate{Position: 3, Ahead: 2}, room.EventState{}),
		"fifo for more than a day":   base(room.FIFO, room.Estimate{Known: true, Minutes: 1441, Position: 9, Ahead: 8}, room.EventState{}),
		"random":                     base(room.Random, chance, room.EventState{}),
		"random without an estimate": base(room.Random, room.Estimate{}, room.EventState{}),
		"passthrough":                base(room.Passthrough, room.Estimate{}, room.EventState{}),
		"pre-queue that shuffles":    base(room.FIFO, room.Estimate{}, before),
		"pre-queue in order":         base(room.FIFO, room.Estimate{Position: 41, Ahead: 40}, inOrder),
		"pre-queue but came before":  base(room.FIFO, place, before),
		"event":                      base(room.FIFO, place, during),
		"event at random":            base(room.Random, chance, during),
		"random in a pre-queue":      base(room.Random, room.Estimate{}, before),
		"passthrough in a pre-queue": base(room.Passthrough, room.Estimate{}, inOrder),
		"passthrough in an event":    base(room.Passthrough, place, during),
	}
	out["pre-queue but came before"].Verdict.Pass.Arrival = Noon.Add(-16 * time.Minute)
	out["event at random"].Verdict.View.Event.Shuffle = true
	held := base(room.FIFO, place, room.EventState{})
	held.Settings.QueueAll = true
	out["queue all"] = held
	out["reject in a pre-queue"] = base(room.Reject, room.Estimate{Position: 1}, inOrder)
	for name, event := range map[string]room.EventState{"reject": {}, "reject in an event": during} {
		reject := base(room.Reject, room.Estimate{}, event)
		reject.Verdict.Refresh, reject.Verdict.Pass = 0, node.Pass{}
		out[name] = reject
	}
	return out
}
