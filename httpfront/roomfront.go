package httpfront

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/gate/expr"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/page/lang"
	"github.com/ropeline/ropeline/node/room"
)

// roomFront is what the front has made of a room's settings. It does not change, but for
// what newVisitors counts.
type roomFront struct {
	rules  []rule
	page   *page.Page
	events map[string]*page.Page // of those with a page of their own

	newVisitors newVisitors
	sharing     room.Sharing

	front    room.Front // what it was made of
	ofEvents []room.Event
}

// rule is one that is not disabled.
type rule struct {
	index       int // among all rules
	description string
	expression  *expr.Expression
}

// roomKey tells rooms apart. A zero ID is that of a room whose id may change; in one zone
// names differ.
type roomKey struct {
	id   crdt.RoomID
	name string
}

// Configure takes over what rooms say of the front: rules, pages and texts. It is
// called with all rooms before Run or Judge, and again with those whose settings change. Rooms are
// told apart by their ids, or by their names where these are zero. What is wrong is
// an error, as of CheckRoom, and changes nothing; what is only suspicious is logged.
// It may be called while requests run, from one goroutine at a time.
func (f *Front) Configure(some ...room.Settings) error {
	rooms := maps.Clone(*f.rooms.Load())
	for _, s := range some {
		made, err := f.make(s)
		if err != nil {
			return err
		}
		rooms[roomKey{s.ID, s.Name}] = made
	}
	f.rooms.Store(&rooms)
	return nil
}

// Follow is Configure for all rooms that there are; others are forgotten. Rooms of which
// it cannot use what they say stay as they were, or have the built-in page and no rules;
// they are in the error.
func (f *Front) Follow(all []room.Settings) error {
	var errs []error
	was, rooms := *f.rooms.Load(), make(map[roomKey]*roomFront, len(all))
	for _, s := range all {
		key := roomKey{s.ID, s.Name}
		made := was[key]
		if made == nil || !reflect.DeepEqual(made.front, s.Front) || !reflect.DeepEqual(made.ofEvents, s.Events) {
			next, err := f.make(s)
			if errs = append(errs, err); err == nil {
				made = next
			}
		}
		if made != nil {
			rooms[key] = made
		}
	}
	f.rooms.Store(&rooms)
	return errors.Join(errs...)
}

func (f *Front) make(s room.Settings) (*roomFront, error) {
	made, warnings, err := newRoomFront(&s, f.cfg.Lists, f.cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("http front: room %q: %w", s.Name, err)
	}
	for _, w := range warnings {
		what := "a template names something that is not known"
		if w.Refreshes {
			what = "a template has a refresh by an interval, which is left out where there is none; browsers load the page again without it"
		}
		f.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, what,
			slog.String("room", s.Name), slog.String("setting", w.field), slog.Int("line", w.Line), slog.String("name", w.Name), slog.String("did_you_mean", w.Nearest))
	}
	var before *newVisitors
	if was := (*f.rooms.Load())[roomKey{s.ID, s.Name}]; was != nil {
		before = &was.newVisitors
	}
	made.newVisitors = newNewVisitors(s.Front.NewVisitors, before)
	return made, nil
}

// CheckRoom reports every setting of a room that the front cannot use, joined; each
// part is a *room.FieldError. lists are those that rules may name.
func CheckRoom(s *room.Settings, lists expr.Lists) error {
	_, _, err := newRoomFront(s, lists, slog.New(slog.DiscardHandler))
	return err
}

// Page returns the page of a room, or that of one of its events if event is not
// empty. Rooms go by their name or id; where there is one only, it need not be named. The
// error names what there is.
func (f *Front) Page(name, event string) (*page.Page, error) {
	rooms := *f.rooms.Load()
	var found []*roomFront
	for key, r := range rooms {
		if key.name == name || key.id.String() == name || name == "" {
			found = append(found, r)
		}
	}
	switch {
	case len(found) == 0 || len(found) > 1 && name == "":
		var names []string
		for key := range rooms {
			names = append(names, key.name)
		}
		slices.Sort(names)
		there := cmp.Or(strings.Join(slices.Compact(names), ", "), "none")
		if len(found) > 1 {
			return nil, fmt.Errorf("which room is missing; there are %s", there)
		}
		return nil, fmt.Errorf("there is no room %q; there are %s", name, there)
	case len(found) > 1:
		return nil, fmt.Errorf("%d rooms of several zones are called %q; give the id of the one that is meant", len(found), name)
	case event == "":
		return found[0].page, nil
	case found[0].events[event] == nil:
		return nil, fmt.Errorf("room %q has no event %q with a page of its own; there are %s", name, event, namesOf(found[0].events))
	}
	return found[0].events[event], nil
}

func namesOf[V any](m map[string]V) string {
	if len(m) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// frontOf returns what the settings of a room come to. Of a room that was not
// configured they are the defaults.
func (f *Front) frontOf(s *room.Settings) *roomFront {
	rooms := *f.rooms.Load()
	if r := rooms[roomKey{s.ID, s.Name}]; r != nil {
		return r
	}
	if r := rooms[roomKey{name: s.Name}]; r != nil {
		return r
	}
	return f.plain
}

// pageOf returns the page for the time of an event; event is empty if none is near.
func (r *roomFront) pageOf(event string) *page.Page {
	if p := r.events[event]; p != nil {
		return p
	}
	return r.page
}

// warning is what is suspicious in a template.
type warning struct {
	page.Warning
	field string
}

// roomMaker makes a roomFront and gathers what is wrong.
type roomMaker struct {
	warnings []warning
	errs     []error
	steps    int // of the regular expressions of the rules so far
}

func (m *roomMaker) fail(field, problem string) {
	m.errs = append(m.errs, &room.FieldError{Field: field, Problem: problem})
}

func newRoomFront(s *room.Settings, lists expr.Lists, log *slog.Logger) (*roomFront, []warning, error) {
	var m roomMaker
	made := &roomFront{events: map[string]*page.Page{}, sharing: s.Front.Sharing, front: s.Front, ofEvents: s.Events}
	for i := range s.Front.Rules {
		m.rule(made, i, &s.Front.Rules[i], lists)
	}
	m.texts(&s.Front)
	const field = "custom-page-html"
	ofRoom := m.template(field, s.Front.CustomPage)
	ofEvents := make([]*page.Template, len(s.Events))
	for i := range s.Events {
		if p := s.Events[i].CustomPage; p != nil {
			ofEvents[i] = m.template(fmt.Sprintf("events[%d].%s", i, field), *p)
		}
	}
	if len(m.errs) > 0 {
		return nil, nil, errors.Join(m.errs...)
	}

	cfg := page.Config{
		Template: ofRoom, Language: s.Front.Language, NoJSON: s.Front.NoJSON, Message: s.Front.Message,
		FrameAncestors: s.Front.FrameAncestors, Logger: log,
	}
	var err error
	if made.page, err = page.New(cfg); err != nil {
		return nil, nil, err
	}
	for i := range s.Events {
		if s.Events[i].CustomPage == nil {
			continue
		}
		cfg.Template = ofEvents[i]
		if made.events[s.Events[i].Name], err = page.New(cfg); err != nil {
			return nil, nil, err
		}
	}
	return made, m.warnings, nil
}

// stepsMax bounds the steps of all rules of a room: one request of somebody whom no rule lets pass is held against each of
// them. It comes to rate limits as well, which have catalog.MaxLimitSteps.
const stepsMax = 2000

// rule compiles a rule, disabled ones too: who enables it later shall not find out
// then.
func (m *roomMaker) rule(made *roomFront, i int, r *room.Rule, lists expr.Lists) {
	field := fmt.Sprintf("rules[%d].expression", i)
	compiled, err := expr.Compile(r.Expression, lists)
	if err != nil {
		m.errs = append(m.errs, expressionError(field, err))
		return
	}
	if m.steps += compiled.Steps(); m.steps > stepsMax {
		m.errs = append(m.errs, expressionError(field, fmt.Errorf(
			"the rules up to this one may take %d steps for each byte of a request, mostly of their regular expressions with the repetitions written out; %d are allowed: repeat less", m.steps, stepsMax)))
		return
	}
	if !r.Disabled {
		made.rules = append(made.rules, rule{i, r.Description, compiled})
	}
}

// expressionError says what is wrong with an expression, and where.
func expressionError(field string, err error) *room.FieldError {
	e := &room.FieldError{Field: field, Problem: err.Error()}
	if wrong, ok := errors.AsType[*expr.Error](err); ok {
		e.Problem += "\n\t" + strings.ReplaceAll(wrong.Excerpt(), "\n", "\n\t")
	}
	return e
}

func (m *roomMaker) texts(s *room.Front) {
	if s.Language != "" && lang.Of(s.Language) == nil {
		m.errs = append(m.errs, &room.FieldError{Field: "default-template-language", Value: s.Language, Allowed: "one of " + strings.Join(lang.Tags(), ", ")})
	}
	if err := page.CheckMessage(s.Message); err != nil {
		m.fail("message", err.Error())
	}
	if err := page.CheckFrameAncestors(s.FrameAncestors); err != nil {
		m.fail("frame-ancestors", err.Error())
	}
}

// template compiles a page; nil is the built-in one.
func (m *roomMaker) template(field, text string) *page.Template {
	if text == "" {
		return nil
	}
	t, warnings, err := page.Compile(text)
	if err != nil {
		m.fail(field, err.Error())
	}
	for _, w := range warnings {
		m.warnings = append(m.warnings, warning{w, field})
	}
	return t
}
