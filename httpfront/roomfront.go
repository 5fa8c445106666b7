package httpfront

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/httpfront/expr"
	"github.com/ropeline/ropeline/httpfront/lang"
	"github.com/ropeline/ropeline/httpfront/page"
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
}

// rule is one that is not disabled.
type rule struct {
	index       int // among all rules
	description string
	expression  *expr.Expression
}

// Configure takes over what s says of the front: rules, pages and texts. It is
// called for each room before Run or Judge, and again whenever settings change, after
// the node has taken them; rooms are told apart by their names. What is wrong is
// an error, as of CheckRoom, and changes nothing; what is only suspicious is logged.
// It may be called while requests run, from one goroutine at a time.
func (f *Front) Configure(s room.Settings) error {
	made, warnings, err := newRoomFront(&s, f.cfg.Lists, f.cfg.Logger)
	if err != nil {
		return fmt.Errorf("http front: room %q: %w", s.Name, err)
	}
	for _, w := range warnings {
		f.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "a template names something that is not known",
			slog.String("room", s.Name), slog.String("setting", w.field), slog.Int("line", w.Line), slog.String("name", w.Name), slog.String("did_you_mean", w.Nearest))
	}
	rooms := map[string]*roomFront{s.Name: made}
	made.newVisitors = newNewVisitors(s.Front.NewVisitors, nil)
	if old := f.rooms.Load(); old != nil {
		if before := (*old)[s.Name]; before != nil {
			made.newVisitors = newNewVisitors(s.Front.NewVisitors, &before.newVisitors)
		}
		next := maps.Clone(*old)
		next[s.Name] = made
		rooms = next
	}
	f.rooms.Store(&rooms)
	return nil
}

// CheckRoom reports every setting of a room that the front cannot use, joined; each
// part is a *room.FieldError. lists are those that rules may name.
func CheckRoom(s *room.Settings, lists expr.Lists) error {
	_, _, err := newRoomFront(s, lists, slog.New(slog.DiscardHandler))
	return err
}

// Page returns the page of a room, or that of one of its events if event is not
// empty. Where there is one room only, it need not be named. The error names what
// there is.
func (f *Front) Page(name, event string) (*page.Page, error) {
	var rooms map[string]*roomFront
	if all := f.rooms.Load(); all != nil {
		rooms = *all
	}
	r := rooms[name]
	if name == "" && len(rooms) == 1 {
		for _, r = range rooms {
		}
	}
	switch {
	case r == nil && name == "" && len(rooms) > 0:
		return nil, fmt.Errorf("which room is missing; there are %s", namesOf(rooms))
	case r == nil:
		return nil, fmt.Errorf("there is no room %q; there are %s", name, namesOf(rooms))
	case event == "":
		return r.page, nil
	case r.events[event] == nil:
		return nil, fmt.Errorf("room %q has no event %q with a page of its own; there are %s", name, event, namesOf(r.events))
	}
	return r.events[event], nil
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
	if rooms := f.rooms.Load(); rooms != nil {
		if r := (*rooms)[s.Name]; r != nil {
			return r
		}
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
}

func (m *roomMaker) fail(field, problem string) {
	m.errs = append(m.errs, &room.FieldError{Field: field, Problem: problem})
}

func newRoomFront(s *room.Settings, lists expr.Lists, log *slog.Logger) (*roomFront, []warning, error) {
	var m roomMaker
	made := &roomFront{events: map[string]*page.Page{}, sharing: s.Front.Sharing}
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

// rule compiles a rule, disabled ones too: who enables it later shall not find out
// then.
func (m *roomMaker) rule(made *roomFront, i int, r *room.Rule, lists expr.Lists) {
	field := fmt.Sprintf("rules[%d].expression", i)
	compiled, err := expr.Compile(r.Expression, lists)
	if e, ok := errors.AsType[*expr.Error](err); ok {
		m.fail(field, e.Error()+"\n\t"+strings.ReplaceAll(e.Excerpt(), "\n", "\n\t"))
		return
	} else if err != nil {
		m.fail(field, err.Error())
		return
	}
	if !r.Disabled {
		made.rules = append(made.rules, rule{i, r.Description, compiled})
	}
}

func (m *roomMaker) texts(s *room.Front) {
	if s.Language != "" && lang.Of(s.Language) == nil {
		m.errs = append(m.errs, &room.FieldError{Field: "default-template-language", Value: s.Language, Allowed: "one of " + lang.Tags()})
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
