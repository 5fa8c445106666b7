package catalog

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// What a catalog holds at most. The map that it lives in is bounded as well, in bytes.
const (
	MaxRooms = 1000    // of all zones
	MaxPage  = 1 << 20 // bytes of one page
	MaxZone  = 64      // characters of a zone's name

	maxDescription = 500 // characters
)

// DefaultZone is where rooms are that nobody gave a zone.
const DefaultZone = "default"

// ID names an event or a rule within its room. It is random; the zero value names none.
type ID [16]byte

// String returns the id as 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads the form that String writes.
func ParseID(s string) (id ID, err error) {
	if len(s) != 2*len(id) {
		return id, fmt.Errorf("id %q: want %d hexadecimal digits", s, 2*len(id))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("id %q: %w", s, err)
	}
	return id, nil
}

// Zone is a name space of rooms. The zero value has the defaults.
type Zone struct {
	// SearchEngineCrawlerBypass has crawlers of search engines pass all rooms of the zone.
	SearchEngineCrawlerBypass bool
}

// Turnstile is what operators have set of a challenge that this product does not have. It
// is kept so that settings brought from elsewhere come back as they were, and does nothing.
type Turnstile struct {
	Mode   string // "off", "invisible", "visible_non_interactive" or "visible_managed"
	Action string // "log" or "infinite_queue"
}

// Room is a room as operators have set it.
type Room struct {
	Zone        string
	Description string
	Created     time.Time
	Modified    time.Time // of the newest change of anything in it; read only
	Turnstile   Turnstile

	// Settings are those of the room alone: its Events and Front.Rules are empty, and
	// stand below. See Whole.
	Settings room.Settings

	Events []Event // in the order in which they were made
	Rules  []Rule  // in the order in which they are asked

	// Incomplete says whose page has not arrived as a whole: "room", or the name of an
	// event. Empty: none is missing. Read only.
	Incomplete string

	thing
	page textRef // of the page
}

// Event is an event as operators have set it.
type Event struct {
	ID          ID
	Description string
	Created     time.Time
	Modified    time.Time
	Turnstile   Turnstile // empty parts inherit the room's
	room.Event

	thing
	page *textRef // of the page; nil: it has none of its own
}

// Rule is a rule as operators have set it.
type Rule struct {
	ID       ID
	Version  int // from 1 on; one more with each change
	Created  time.Time
	Modified time.Time
	room.Rule

	thing
}

// Whole returns the settings of the room with its events and rules in them. They share
// nothing with r that can be changed.
func (r *Room) Whole() room.Settings {
	s := r.Settings
	s.Events = make([]room.Event, len(r.Events))
	for i := range r.Events {
		s.Events[i] = r.Events[i].Event
	}
	s.Front.Rules = make([]room.Rule, len(r.Rules))
	for i := range r.Rules {
		s.Front.Rules[i] = r.Rules[i].Rule
	}
	return s.Clone()
}

// Clone returns a copy that shares nothing with r that can be changed.
func (r *Room) Clone() *Room {
	c := *r
	c.Settings = r.Settings.Clone()
	c.Events = append([]Event(nil), r.Events...)
	c.Rules = append([]Rule(nil), r.Rules...)
	return &c
}

// Event returns the event of that id; nil if there is none.
func (r *Room) Event(id ID) *Event {
	for i := range r.Events {
		if r.Events[i].ID == id {
			return &r.Events[i]
		}
	}
	return nil
}

// Rule returns the rule of that id; nil if there is none.
func (r *Room) Rule(id ID) *Rule {
	for i := range r.Rules {
		if r.Rules[i].ID == id {
			return &r.Rules[i]
		}
	}
	return nil
}
