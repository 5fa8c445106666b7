package admin

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

// Codes of mistakes and messages. They stay once they are released: programs go by them.
// Those of four digits that begin with 1 are of this product; the others are those that the
// dialect has for the same.
const (
	CodeNotJSON  = 1001 // the body is not one JSON value
	CodeUnknown  = 1002 // there is no such field
	CodeType     = 1003 // a value of another JSON type is wanted
	CodeRefused  = 1004 // the value is not allowed
	CodeMissing  = 1005 // the field has to be there
	CodeConflict = 1006 // it does not go together with other rooms
	CodeTooLarge = 1007 // the body is too long
	CodeTwice    = 1008 // a name stands twice in one object
	CodeQuery    = 1009 // a parameter of the query is not allowed
	CodeMedia    = 1010 // the body is of another type than JSON
	CodeRequest  = 1011 // the request itself is not in order: its head, path or query

	CodeNoRoom  = 1101 // there is no such room
	CodeNoEvent = 1102 // there is no such event of the room
	CodeNoRule  = 1103 // there is no such rule of the room
	CodeSeveral = 1104 // several rooms, or rate limits, have this name
	CodeNoLimit = 1105 // there is no such rate limit

	CodeFailed = 1201 // the node could not do it; the same request may be sent again
	CodeFault  = 1202 // there is a fault in the node, and its log says which
	CodeOften  = 1203 // too many requests from one address
	CodeFull   = 1204 // there is no room for anything new; what there is can be changed and deleted

	CodeNotServed = 1301 // a message, no mistake: this node does not run the room
	CodeNoEffect  = 1302 // a message, no mistake: the setting is kept, and nothing is done with it
	CodeNotYet    = 1303 // a message, no mistake: some nodes do not have the change on their disks yet

	CodeNoRoute  = 7003  // nothing is at this path
	CodeMayNot   = 10000 // who asks may not: there is no token, or one for less; or a page of another site asks
	CodeNoMethod = 10405 // what is at this path does not know the method
)

// maxMistakes is how many mistakes of one kind are told of one request.
const maxMistakes = 100

// Mistake is one thing that is wrong with a request, or a message about it.
type Mistake struct {
	Code    int    `json:"code"`
	Message string `json:"message"` // has all that the other fields say, for people

	Field   string `json:"field,omitzero"`   // as the request spells it, such as "additional_routes[0].path"
	Value   string `json:"value,omitzero"`   // what was given, perhaps shortened
	Allowed string `json:"allowed,omitzero"` // what would be accepted
}

// Refusal is the error of a request that is not carried out.
type Refusal struct {
	Status   int // of HTTP
	Mistakes []Mistake
}

// Error implements error.
func (r *Refusal) Error() string {
	texts := make([]string, len(r.Mistakes))
	for i, m := range r.Mistakes {
		texts[i] = m.Message
	}
	return strings.Join(texts, "; ")
}

// Refuse returns a Refusal with one mistake that is not about a field.
func Refuse(status, code int, format string, args ...any) *Refusal {
	return &Refusal{status, []Mistake{{Code: code, Message: fmt.Sprintf(format, args...)}}}
}

func bad(mistakes ...Mistake) *Refusal { return &Refusal{http.StatusBadRequest, mistakes} }

// refused is the mistake of a value that is not allowed.
func refused(code int, field string, v value, allowed string) Mistake {
	return Mistake{code, fmt.Sprintf("%s: %s is not allowed: want %s", field, v, allowed), field, v.String(), allowed}
}

// part is which event or rule of a room a request is about; the zero value is the room.
type part struct {
	list  string // "events" or "rules"
	index int
}

// prefix returns what the fields of the part begin with where they are told of as a part of
// the room.
func (p part) prefix() string {
	if p.list == "" {
		return ""
	}
	return fmt.Sprintf("%s[%d].", p.list, p.index)
}

// checked adds what of errs, leaves of catalog.Check, is wrong with a room to what r has
// found itself, in the spelling of a request about a part of it. What follows from a mistake
// that r has found is left out.
func (r *reader) checked(errs []error, is *catalog.Room, about part) {
	if r.body.kind != kindObject {
		return // nothing of it was read, so nothing of what is wrong was said
	}
	found := fieldsOf(r.mistakes)
	for _, err := range errs {
		m := r.mistakeOf(err, is, about)
		if !follows(m, found) && (m.Field == "" || !slices.Contains(fieldsOf(r.mistakes), m.Field)) {
			r.mistakes = append(r.mistakes, m)
		}
	}
}

func fieldsOf(mistakes []Mistake) (fields []string) {
	for _, m := range mistakes {
		fields = append(fields, m.Field)
	}
	return fields
}

// follows reports whether a mistake may be there only because of others, in these fields: a
// room whose host was not read seems to be in the way of others, for instance.
func follows(m Mistake, found []string) bool {
	return slices.ContainsFunc(found, func(field string) bool {
		name, _, _ := strings.Cut(field, "[")
		switch {
		case m.Code == CodeConflict:
			return slices.Contains([]string{"host", "path", "cookie_suffix", "additional_routes"}, name)
		case strings.HasSuffix(m.Field, "]"): // an item of a list
			return name == "host" || name == "path" || strings.HasPrefix(field, m.Field)
		}
		return strings.HasPrefix(m.Field, field+".") // of an object that was none
	})
}

// newLeaves returns the errors of after that are not in before. What was wrong with a
// room already, since changes at two nodes did not go together, does not keep anybody from
// changing something else.
func newLeaves(before, after error) (all []error) {
	known := map[string]bool{}
	for _, err := range leaves(before) {
		known[err.Error()] = true
	}
	for _, err := range leaves(after) {
		if !known[err.Error()] {
			all = append(all, err)
		}
	}
	return all
}

// leaves returns the errors that were joined.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}

func (r *reader) mistakeOf(err error, is *catalog.Room, about part) Mistake {
	fe, ok := errors.AsType[*room.FieldError](err)
	if !ok {
		return Mistake{Code: CodeConflict, Message: spelling.Replace(err.Error())}
	}
	field, ours := strings.CutPrefix(fe.Field, about.prefix())
	return r.fieldMistake(fe, field, ours, namedEvents(spelling.Replace(fe.Allowed), is))
}

// fieldMistake tells of an error about a field, called name in configuration files. ours says that the request may have it.
func (r *reader) fieldMistake(e *room.FieldError, name string, ours bool, allowed string) Mistake {
	name = strings.ReplaceAll(name, "-", "_")
	if e.Problem != "" {
		return Mistake{Code: CodeRefused, Message: name + ": " + e.Problem, Field: name}
	}
	given := value{kind: kindText, text: e.Value}
	if v, there := r.body.lookup(name); ours && there && (v.kind != kindText || len(v.text) <= maxShown) {
		given = v
	}
	return refused(CodeRefused, name, given, allowed)
}

var eventIndex = regexp.MustCompile(`events\[(\d+)\]`)

// namedEvents names the events that a text counts: requests do not have them in a list.
func namedEvents(text string, is *catalog.Room) string {
	return eventIndex.ReplaceAllStringFunc(text, func(s string) string {
		i, err := strconv.Atoi(eventIndex.FindStringSubmatch(s)[1])
		if err != nil || i >= len(is.Events) {
			return s
		}
		return fmt.Sprintf("the event %q", is.Events[i].Name)
	})
}

// spelling turns names of settings as configuration files have them into those here.
var spelling = strings.NewReplacer(
	"cookie-suffix", "cookie_suffix", "prequeue-start-time", "prequeue_start_time", "additional-routes", "additional_routes",
)
