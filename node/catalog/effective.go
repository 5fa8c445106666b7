package catalog

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// Refusal says what of a catalog cannot hold, though it was sound where it was written.
type Refusal struct {
	Room  crdt.RoomID
	Name  string // of the room
	Event string // by name; empty: it is about the whole room
	Limit string // the name of a rate limit rule, and the others are empty; empty: it is about a room
	Why   error
}

// Effects is what comes of a catalog.
type Effects struct {
	// Running has the settings by which rooms are run, oldest first. They are shared with the
	// effects of later catalogs, and are not to be changed.
	Running []*room.Settings
	// Refused is what was left out because it does not go together with what is older.
	Refused []Refusal

	alone map[*Room]*effect // of each room, whatever the others are
}

// effect is what comes of one room by itself.
type effect struct {
	settings      *room.Settings
	refused       []Refusal
	err           error
	crawlerBypass bool // of its zone
}

// Effective returns what Effects has of a catalog. The settings are the caller's.
func (c *Catalog) Effective(check func(*room.Settings) error) (all []room.Settings, refused []Refusal) {
	e := c.Effects(nil, check)
	for _, s := range e.Running {
		all = append(all, s.Clone())
	}
	return all, e.Refused
}

// Effects returns what comes of a catalog. before is what came of an earlier one by the same check, and
// saves work on the rooms that both have; it may be nil. check
// says what else is to hold of a room, as the front sees it; nil: nothing. A room that is
// refused is not run, and requests for it go to the rooms or the site that they would go
// to without it; it runs as soon as an operator has changed it, or what stands in its way.
//
// A limit that an operator has set must not fall away because of a lesser mistake, so
// whatever can be left out is: an event that overlaps another or is one too many, a rule
// that a node cannot ask or that is one too many, a page that is none or has not arrived, a
// setting that a node cannot use.
func (c *Catalog) Effects(before *Effects, check func(*room.Settings) error) *Effects {
	rooms := slices.Clone(c.order)
	slices.SortFunc(rooms, older)
	if before == nil {
		before = &Effects{}
	}
	ran := make(map[*room.Settings]bool, len(before.Running)) // beside each other
	for _, s := range before.Running {
		ran[s] = true
	}
	var all, others room.Neighbours // others: those that did not run before
	e := &Effects{alone: make(map[*Room]*effect, len(rooms))}
	for _, r := range rooms {
		x := before.alone[r]
		if bypass := c.zones[r.Zone].SearchEngineCrawlerBypass; x == nil || x.crawlerBypass != bypass {
			x = r.effect(bypass, check)
		}
		e.alone[r] = x
		e.Refused = append(e.Refused, x.refused...)
		s, err := x.settings, x.err
		if err == nil && ran[s] {
			err = others.Apart(s)
		} else if err == nil {
			err = all.Apart(s)
		}
		if err == nil && len(e.Running) == MaxRooms {
			err = fmt.Errorf("there are %d rooms that are older, which is as many as there may be", MaxRooms)
		}
		if err != nil {
			e.Refused = append(e.Refused, Refusal{Room: s.ID, Name: s.Name, Why: err})
			continue
		}
		e.Running = append(e.Running, s)
		if all.Add(s); !ran[s] {
			others.Add(s)
		}
	}
	return e
}

func (r *Room) effect(crawlerBypass bool, check func(*room.Settings) error) *effect {
	s, refused := r.sound(check)
	s.Front.CrawlerBypass = crawlerBypass
	x := &effect{settings: &s, refused: refused, err: validate(&s, check), crawlerBypass: crawlerBypass}
	if reflect.DeepEqual(s, r.Settings) { // as nearly always: there may be a thousand
		x.settings = &r.Settings
	}
	return x
}

var eventIndex = regexp.MustCompile(`events\[(\d+)\]`)

// named returns an error about the last of some events that calls the others by their names,
// instead of by their places in a list that nobody else has.
func named(err error, events []room.Event) error {
	text := strings.ReplaceAll(err.Error(), fmt.Sprintf("events[%d].", len(events)-1), "")
	text = eventIndex.ReplaceAllStringFunc(text, func(s string) string {
		i, convErr := strconv.Atoi(eventIndex.FindStringSubmatch(s)[1])
		if convErr != nil || i >= len(events) {
			return s
		}
		return fmt.Sprintf("the event %q", events[i].Name)
	})
	return errors.New(text)
}

func validate(s *room.Settings, check func(*room.Settings) error) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if check == nil {
		return nil
	}
	return check(s)
}

// withoutOne gives that unit of a room its default without which the rest holds, if there is one. A
// room stands nowhere without its routes, and has no limit without its limits.
func withoutOne(s *room.Settings, check func(*room.Settings) error) (unit string, ok bool) {
	fresh := freshRoom()
	for i := range roomUnits {
		u := &roomUnits[i]
		if u.born || slices.Contains([]string{unitName, unitRoutes, unitTotal, unitRate, unitPage}, u.name) {
			continue
		}
		with := Room{Settings: s.Clone()}
		if u.set(&with, u.value(&fresh)); validate(&with.Settings, check) == nil {
			*s = with.Settings
			return u.name, true
		}
	}
	return "", false
}

// sound returns the settings of a room without those of its parts that do not hold, or do
// not go together with older ones.
func (r *Room) sound(check func(*room.Settings) error) (s room.Settings, refused []Refusal) {
	s = r.Whole()
	whole := s
	s.Events, s.Front.Rules, s.Front.CustomPage = nil, nil, ""
	refuse := func(event string, why error) {
		refused = append(refused, Refusal{Room: s.ID, Name: s.Name, Event: event, Why: why})
	}
	if err := validate(&s, check); err != nil {
		unit, ok := withoutOne(&s, check)
		if !ok {
			return whole, nil // which the caller finds out, and says
		}
		refuse("", fmt.Errorf("%s has its default: %w", unit, err))
	}
	with := s
	with.Front.CustomPage = whole.Front.CustomPage
	if err := validate(&with, check); err != nil {
		refuse("", fmt.Errorf("visitors get the built-in page: %w", err))
	} else {
		s = with
	}
	rules := whole.Front.Rules
	if len(rules) == 0 {
		rules = nil // as the catalog has none, so that a room may share its settings
	}
	if len(rules) > room.MaxRules {
		refuse("", fmt.Errorf("rules from the %dth on are not asked: a room has at most %d", room.MaxRules+1, room.MaxRules))
		rules = rules[:room.MaxRules]
	}
	s.Front.Rules = rules
	if validate(&s, check) != nil {
		s.Front.Rules = nil
		for i, rule := range rules {
			with := s
			with.Front.Rules = append(slices.Clone(s.Front.Rules), rule)
			if err := validate(&with, check); err != nil {
				refuse("", fmt.Errorf("rule %d is not asked: %w", i+1, err))
				continue
			}
			s = with
		}
	}
	for i := range whole.Events {
		with := s
		with.Events = append(slices.Clone(s.Events), whole.Events[i])
		err := validate(&with, check)
		if err != nil && with.Events[len(s.Events)].CustomPage != nil { // rather without its page
			page := err
			if with.Events[len(s.Events)].CustomPage = nil; validate(&with, check) == nil {
				err = nil
				refuse(whole.Events[i].Name, fmt.Errorf("visitors get the page of the room: %w", page))
			}
		}
		if slices.ContainsFunc(s.Events, func(e room.Event) bool { return e.Name == whole.Events[i].Name }) {
			err = fmt.Errorf("an older event of the room is called %q, too; give one of them another name", whole.Events[i].Name)
		}
		if err != nil {
			refuse(whole.Events[i].Name, named(err, with.Events))
			continue
		}
		s = with
	}
	return s, refused
}
