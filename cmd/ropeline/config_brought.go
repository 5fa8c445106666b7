package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"
)

// Settings that are brought along from a hosted waiting room, as its API shows them.

// What the API shows of a room, an event or a rule, and means nothing here: nothing is
// done with it. Of turnstileMode one value alone is taken.
var (
	broughtByRooms  = []string{"id", "created-on", "modified-on", "next-event-start-time", "next-event-prequeue-start-time", turnstileMode, "turnstile-action"}
	broughtByEvents = []string{"id", "created-on", "modified-on", "description", turnstileMode, "turnstile-action"}
	broughtByRules  = []string{"id", "version", "last-updated"}
)

const (
	turnstileMode = "turnstile-mode"
	turnstileOff  = "off"
)

// isBrought reports whether a key is one of those, of whichever part.
func isBrought(key string) bool {
	return slices.Contains(broughtByRooms, key) || slices.Contains(broughtByEvents, key) || slices.Contains(broughtByRules, key)
}

// broughtNodes are the values of such keys in one mapping.
type broughtNodes struct {
	keys  []string
	nodes []ast.Node
}

// lists adds the keys to what a mapping may have beside flags.
func (b *broughtNodes) lists(keys []string, more lists) lists {
	b.keys, b.nodes = keys, make([]ast.Node, len(keys))
	for i, key := range keys {
		more[key] = &b.nodes[i]
	}
	return more
}

// passOver remembers which of the keys the file has. A check of visitors that there is
// none of here is refused: whoever has asked for it shall not think that it is made.
func (r *configReader) passOver(b broughtNodes) {
	for i, node := range b.nodes {
		if node == nil {
			continue
		}
		if key := b.keys[i]; key == turnstileMode && !isNull(node) {
			mode, err := scalars(node, false, false)
			if err == nil && mode[0] != turnstileOff {
				err = fmt.Errorf("%q is not allowed: visitors are not checked for being human here; write %q, or leave the line out", mode[0], turnstileOff)
			}
			if err != nil {
				r.fail(node, key, err)
				continue
			}
		}
		if name := strings.ReplaceAll(b.keys[i], "-", "_"); !slices.Contains(r.passedOver, name) {
			r.passedOver = append(r.passedOver, name)
		}
	}
}

// nameOrRoom sets the name of a room in the list, which may stand under "name" as well.
func (r *configReader) nameOrRoom(node ast.Node, field string, fs *pflag.FlagSet) {
	if node == nil {
		return
	}
	if at, twice := r.lines[field+".room"]; twice {
		r.fail(node, "name", fmt.Errorf("the name stands under \"room\" in line %d as well; keep one of the two", at.line))
		return
	}
	if r.set(node, fs.Lookup("room")) {
		r.lines[field+".room"] = positionOf(node)
	}
}

// describe looks at a description, which is for the operator alone.
func (r *configReader) describe(node ast.Node) {
	if node == nil || isNull(node) {
		return
	}
	if _, err := scalars(node, false, false); err != nil {
		r.fail(node, "description", err)
	}
}

// inMinutes returns a duration of whole minutes: that is what session_duration is, spelled
// as in the API. Any other spelling needs a unit, so that nobody takes seconds for minutes.
func inMinutes(key ast.MapKeyNode, value ast.Node) (string, bool) {
	name := key.String()
	if s, ok := key.(*ast.StringNode); ok {
		name = s.Value
	}
	if _, ok := value.(*ast.IntegerNode); !ok || name != "session_duration" {
		return "", false
	}
	return value.GetToken().Value + "m", true
}

// isUnsaid reports whether a value is that of a setting which an event takes from its
// room: the API says null.
func isUnsaid(node ast.Node, flag *pflag.Flag) bool {
	return isNull(node) && specOf(flag).Null
}

func isNull(node ast.Node) bool { return node.Type() == ast.NullType }

var errOutsideTheList = errors.New("that is of a room; put the room into the list \"rooms\". Outside of it, \"name\" is that of the node")

// logPassedOver says what of the file nothing is done with.
func (c *config) logPassedOver(log *slog.Logger) {
	if len(c.file.passedOver) > 0 {
		log.Info("settings that are brought along and mean nothing here are passed over",
			"file", c.file.file, "names", strings.Join(c.file.passedOver, ", "))
	}
}

// inOrder sorts what is wrong by where it stands; what the command line says comes last.
func inOrder(errs []error) []error {
	at := func(err error) position {
		if e, ok := errors.AsType[*fieldError](err); ok {
			return e.at
		}
		return position{line: int(^uint(0) >> 1)}
	}
	slices.SortStableFunc(errs, func(a, b error) int {
		return cmp.Or(cmp.Compare(at(a).line, at(b).line), cmp.Compare(at(a).column, at(b).column))
	})
	return errs
}

// together joins what is wrong with the file and with how its settings fit together,
// which is told of those alone that were taken.
func together(inFile, combined error) error {
	errs, refused := joined(inFile), refusals{}
	for _, err := range errs {
		e, ok := errors.AsType[*fieldError](err)
		if !ok {
			return inFile // nothing is known of the settings
		}
		refused.add(e.field)
	}
	if refused["origins"] {
		refused["origin"] = true // the flag for the same
	}
	for _, err := range flatten(combined) {
		if !refused.hasFlag(err.Error()) {
			errs = append(errs, err)
		}
	}
	return errors.Join(inOrder(errs)...)
}

// flatten returns all that was joined into err, however deep.
func flatten(err error) (all []error) {
	parts := joined(err)
	if len(parts) == 1 && parts[0] == err {
		return parts
	}
	for _, part := range parts {
		all = append(all, flatten(part)...)
	}
	return all
}

// refusals are the names of settings that were refused. What else would be said of them,
// or of how others fit together with them, would be about values that nobody gave.
type refusals map[string]bool

// add takes in what a field is called, with all that it is a part of.
func (r refusals) add(field string) {
	for part := range strings.SplitSeq(field, ".") {
		whole, _, _ := strings.Cut(part, "[")
		r[part], r[whole] = true, true
	}
}

// has reports whether a text names one of them.
func (r refusals) has(text string) bool { return r.hasAfter("", text) }

// hasFlag reports whether a text names one of them as a flag.
func (r refusals) hasFlag(text string) bool { return r.hasAfter("--", text) }

func (r refusals) hasAfter(prefix, text string) bool {
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool {
		return !strings.ContainsRune("-_[]", c) && (c < '0' || c > '9') && (c < 'a' || c > 'z')
	}) {
		if name, ok := strings.CutPrefix(word, prefix); ok && r[name] {
			return true
		}
	}
	return false
}
