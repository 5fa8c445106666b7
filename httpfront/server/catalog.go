package server

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/gate/expr"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// follower has the front follow the rooms that the node runs, and checks settings for both.
type follower struct {
	lists expr.Lists
	log   *slog.Logger

	front *httpfront.Front // set before the node runs
	node  *node.Node       // the same
	hosts func([]room.Settings) []string

	warned map[string]bool // what was refused, as it was logged; follow's
	left   map[string]bool // the same of rate limits; followLimits'

	mu    sync.Mutex // guards the following
	known map[[sha256.Size]byte]error
}

// maxChecks is how many outcomes of checks are remembered: a catalog is checked as a whole
// whenever it changes, and most of it has not.
const maxChecks = 8192

// cataloging returns what a node is told; nil where there are more rooms than a catalog holds.
func (f *follower) cataloging(rooms int) *node.Cataloging {
	if rooms > catalog.MaxRooms {
		f.log.Warn("there are more rooms in the file than operators can change while nodes run: to change them, change the file of every node and start it again", "rooms", rooms, "most", catalog.MaxRooms)
		return nil
	}
	return &node.Cataloging{Check: f.check, Follow: f.follow, CheckLimit: f.checkLimit, FollowLimits: f.followLimits}
}

// check reports what of a room the front cannot use.
func (f *follower) check(s *room.Settings) error {
	b, err := json.Marshal([]any{s.Front, s.Events})
	if err != nil {
		return fmt.Errorf("room %q: %w", s.Name, err)
	}
	key := sha256.Sum256(b)
	f.mu.Lock()
	err, ok := f.known[key]
	f.mu.Unlock()
	if ok {
		return err
	}
	err = httpfront.CheckRoom(s, f.lists)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil || len(f.known) >= maxChecks {
		f.known = map[[sha256.Size]byte]error{}
	}
	f.known[key] = err
	return err
}

// follow takes over the rooms that are run.
func (f *follower) follow(rooms []room.Settings, refused []catalog.Refusal) {
	if err := f.front.Follow(rooms); err != nil {
		f.log.Error("rooms are served without what they say of pages and rules", "error", err)
	}
	f.front.SetHosts(f.hosts(rooms))
	f.warned = f.warn(f.warned, refused)
}

// warn tells of what is refused that was not before, and returns what is.
func (f *follower) warn(before map[string]bool, refused []catalog.Refusal) map[string]bool {
	now := map[string]bool{}
	for _, r := range refused {
		text := fmt.Sprint(r.Room, r.Event, r.Limit, r.Why)
		if now[text] = true; before[text] {
			continue
		}
		what := []any{"room", r.Name, "id", r.Room.String(), "event", r.Event, "reason", r.Why}
		if r.Limit != "" {
			what = []any{"limit", r.Limit, "reason", r.Why}
		}
		f.log.Warn("a part of what operators have set cannot hold beside the rest and is left out; change it, or what stands in its way", what...)
	}
	return now
}

// begin has the front follow what does not change while the node runs: the rate limits of a
// node that follows no catalog.
func (f *follower) begin(rules []limit.Rule, rooms int) error {
	if rooms <= catalog.MaxRooms {
		return nil
	}
	return f.front.FollowLimits(limitRules(rules), metersOf(f.node))
}

// limitRules returns the rules of a configuration with their ids.
func limitRules(rules []limit.Rule) []limit.Rule {
	out := make([]limit.Rule, len(rules))
	for i, l := range catalog.FileLimits(rules, time.Time{}) {
		out[i] = l.Rule
	}
	return out
}

// checkLimit reports what of a rate limit the front cannot use, and else what it costs.
func (f *follower) checkLimit(r *limit.Rule) (steps int, err error) {
	return httpfront.CheckLimit(r, f.lists)
}

// followLimits takes over the rate limits that hold.
func (f *follower) followLimits(rules []limit.Rule, refused []catalog.Refusal) {
	if err := f.front.FollowLimits(rules, metersOf(f.node)); err != nil {
		f.log.Error("rate limits are not held against requests", "error", err)
	}
	f.left = f.warn(f.left, refused)
}

// metersOf returns what counts for rate limits at a node.
func metersOf(n *node.Node) func(limit.ID) httpfront.Meter {
	return func(id limit.ID) httpfront.Meter {
		if m := n.Meter(id); m != nil {
			return m
		}
		return nil
	}
}
