package server

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/node/room"
)

// ServedRooms returns the rooms of a configuration complete and checked, with ids that every
// node derives alike from their names.
func (c *Config) ServedRooms() ([]room.Settings, error) {
	if len(c.Rooms) == 0 {
		return nil, at("rooms", "no room is given: want at least one, with a name and its limits")
	}
	out := make([]room.Settings, 0, len(c.Rooms))
	var earlier EarlierRooms
	for i := range c.Rooms {
		out = append(out, c.Rooms[i].WithDefaults())
		s := &out[i]
		if err := earlier.Add(s); err != nil {
			return nil, at("rooms", "rooms: %w", err)
		}
		if err := errors.Join(s.Validate(), httpfront.CheckRoom(s, c.Front.Lists)); err != nil {
			return nil, at("rooms", "room %q: %w", s.Name, err)
		}
	}
	return out, nil
}

// RoomID returns the id of a room that a configuration names.
func RoomID(name string) (id crdt.RoomID) {
	sum := sha256.Sum256([]byte("ropeline room\x00" + name))
	copy(id[:], sum[:])
	return id
}

// EarlierRooms are those that stand before another in a list. The zero value is none.
type EarlierRooms struct {
	names      map[string]bool
	neighbours room.Neighbours
}

// Add adds s, with the id of its name if it has none, which is not to change any more. An error says that nobody could tell it apart from one of the others.
func (e *EarlierRooms) Add(s *room.Settings) error {
	if s.ID == (crdt.RoomID{}) {
		s.ID = RoomID(s.Name)
	}
	err := e.neighbours.Apart(s)
	if e.names[s.Name] {
		err = fmt.Errorf("the name %q is used twice; every room needs its own", s.Name)
	}
	if e.names == nil {
		e.names = map[string]bool{}
	}
	e.names[s.Name] = true
	e.neighbours.Add(s) // also if it is refused: all mistakes are told at once
	return err
}

// hosts returns the hosts that are served; nil if all are.
func (c *Front) hosts(rooms []room.Settings) []string {
	if c.UnknownHosts != HostsRefuse {
		return nil
	}
	return hostsOf(rooms)
}

// hostsOf returns the hosts that rooms are for; nil if one of them is for every host.
func hostsOf(rooms []room.Settings) (hosts []string) {
	seen := map[string]bool{}
	for i := range rooms {
		for r := range rooms[i].Routes() {
			if r.Host == "" {
				return nil
			}
			if !seen[r.Host] {
				seen[r.Host] = true
				hosts = append(hosts, r.Host)
			}
		}
	}
	return hosts
}

// hostsTold is how many hosts a line of the log names.
const hostsTold = 5

// warnOfHosts warns where every room is for a host of its own, and requests for others
// reach the site all the same: that goes around the limit if the site serves them too.
func (c *Front) warnOfHosts(rooms []room.Settings, log *slog.Logger) {
	if hosts := hostsOf(rooms); len(hosts) > 0 && c.UnknownHosts != HostsRefuse {
		log.Warn("every room names a host: requests for any other host, or for the address of this node, go to the site without a queue; "+
			"--unknown-hosts refuse keeps them out, a room without a host has them queue", "hosts", len(hosts), "such_as", hosts[:min(hostsTold, len(hosts))])
	}
}
