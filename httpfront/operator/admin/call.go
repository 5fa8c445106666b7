package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/nearest"
)

// Where the two ways of speaking begin.
const (
	dialectPath = "/client/v4/"
	ownPath     = "/api/v1/"
)

// Call is a request on its way.
type Call struct {
	Request
	api     *API
	route   *Route
	params  map[string]string
	dialect bool

	body     value
	messages []Mistake // for the answer
	notYetAt []string  // as Mesh.Edit has it
}

// Param returns a parameter of the path.
func (c *Call) Param(name string) string { return c.params[name] }

// Room returns the room that the parameter {room} of the path names, as the routes of rooms
// take it.
func (c *Call) Room() (*catalog.Room, error) { return c.room(c.api.mesh.Catalog()) }

// aboutRoom is the handler of a route that asks of the room that its path names.
func aboutRoom(answer func(c *Call, r *catalog.Room) (Answer, error)) Handler {
	return func(_ context.Context, c *Call) (Answer, error) {
		r, err := c.Room()
		if err != nil {
			return Answer{}, err
		}
		return answer(c, r)
	}
}

// Wrong refuses a value.
func Wrong(field, value, allowed string) *Refusal {
	return bad(Mistake{
		Code: CodeRefused, Field: field, Value: shorten(value), Allowed: allowed,
		Message: fmt.Sprintf("%s: %q is not allowed: want %s", field, shorten(value), allowed),
	})
}

// Answer is what a request that was carried out is answered.
type Answer struct {
	Result any   // goes into JSON; where List is set, a slice
	List   bool  // as of the route
	Pages  *Page // of a list that has pages

	Raw *Response // instead of all of these
}

// Page says which part of a list is shown.
type Page struct {
	Page       int `json:"page"` // from 1 on
	PerPage    int `json:"per_page"`
	Count      int `json:"count"` // on this page
	TotalCount int `json:"total_count"`
	TotalPages int `json:"total_pages"`
}

// envelope is what the dialect puts around everything.
type envelope struct {
	Success  bool      `json:"success"`
	Errors   []Mistake `json:"errors"`
	Messages []Mistake `json:"messages"`
	Result   any       `json:"result"`
	Pages    *Page     `json:"result_info,omitempty"`
}

// notYetAtField is the field of an answer that names the nodes which may not have the change on their disks.
const notYetAtField = "Ropeline-Not-Yet-At"

func (c *Call) answered(a Answer) Response {
	if a.Raw != nil {
		return *a.Raw
	}
	names := strings.Join(c.notYetAt, ", ")
	result := a.Result
	switch {
	case c.dialect:
		messages := append([]Mistake{}, c.messages...)
		if names != "" {
			messages = append(messages, Mistake{Code: CodeNotYet, Message: "this holds, and is not yet on the disks of " + names})
		}
		result = envelope{true, []Mistake{}, messages, result, a.Pages}
	case a.List:
		result = struct {
			Items any   `json:"items"`
			Pages *Page `json:"result_info,omitempty"`
		}{result, a.Pages}
	}
	resp := jsonResponse(http.StatusOK, result)
	if names != "" {
		resp.Header = map[string]string{notYetAtField: names}
	}
	return resp
}

func jsonResponse(status int, v any) Response {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("admin: %T: %v", v, err)) // only of values that cannot be written at all
	}
	return Response{Status: status, ContentType: "application/json", Body: append(b, '\n')}
}

// parse reads the body. A type of its own is asked for since no page of another site can
// have a browser send it without being asked.
func (c *Call) parse() error {
	media, _, err := mime.ParseMediaType(c.ContentType)
	if err != nil || media != "application/json" {
		return Refuse(http.StatusUnsupportedMediaType, CodeMedia, "Content-Type: %q is not allowed: want application/json", shorten(c.ContentType))
	}
	v, mistakes := parse(c.Body)
	switch {
	case len(mistakes) > 0 && mistakes[0].Code == CodeTooLarge:
		return &Refusal{http.StatusRequestEntityTooLarge, mistakes}
	case len(mistakes) > 0:
		return bad(mistakes...)
	}
	c.body = v
	return nil
}

// checkQuery refuses parameters that the route does not know. In the dialect they are
// passed over, as there.
func (c *Call) checkQuery() error {
	var known []string
	for _, p := range c.route.Query {
		known = append(known, p.Name)
	}
	var mistakes []Mistake
	for _, name := range slices.Sorted(maps.Keys(c.Query)) {
		switch {
		case len(mistakes) >= maxMistakes:
		case slices.Contains(known, name):
			if n := len(c.Query[name]); n != 1 {
				mistakes = append(mistakes, Mistake{Code: CodeTwice, Field: name, Message: fmt.Sprintf("%s: it stands %d times in the query; want it once", name, n), Allowed: "once"})
			}
		case !c.dialect:
			m := Mistake{Code: CodeQuery, Field: shorten(name), Value: shorten(c.Query.Get(name)), Message: shorten(name) + ": the query has no such parameter here"}
			if near, ok := nearest.Name(shorten(name), known); ok {
				m.Message, m.Allowed = m.Message+"; did you mean "+near+"?", near
			}
			mistakes = append(mistakes, m)
		}
	}
	if len(mistakes) > 0 {
		return bad(mistakes...)
	}
	return nil
}

// Pages of lists. SDKs of the v0 line never ask for another page than the first, so that
// has everything.
const (
	pageStep   = 5
	maxPerPage = 1000
)

var pageQuery = []Parameter{
	{"page", "Which page, from 1 on.", Schema{"type": "integer", "minimum": 1, "default": 1}},
	{"per_page", "How many a page has.", Schema{"type": "integer", "minimum": pageStep, "maximum": maxPerPage, "multipleOf": pageStep, "default": maxPerPage}},
}

// paged returns the page of a list that the query asks for.
func paged[T any](c *Call, all []T) (Answer, error) {
	page, wrong := c.number("page", 1, 1<<31-1, 1)
	per, wrongPer := c.number("per_page", pageStep, maxPerPage, maxPerPage)
	if mistakes := append(wrong, wrongPer...); len(mistakes) > 0 {
		return Answer{}, bad(mistakes...)
	}
	total := len(all)
	from := min((page-1)*per, total)
	part := append([]T{}, all[from:min(from+per, total)]...)
	pages := (total + per - 1) / per
	return Answer{Result: part, List: true, Pages: &Page{page, per, len(part), total, pages}}, nil
}

// number returns a parameter of the query.
func (c *Call) number(name string, lo, hi, unsaid int) (int, []Mistake) {
	if !c.Query.Has(name) {
		return unsaid, nil
	}
	allowed := fmt.Sprintf("a whole number from %d to %d", lo, hi)
	if lo == pageStep {
		allowed = fmt.Sprintf("a multiple of %d from %d to %d", pageStep, lo, hi)
	}
	given := c.Query.Get(name)
	n, err := strconv.Atoi(given)
	if err != nil || n < lo || n > hi || lo == pageStep && n%pageStep != 0 {
		m := refused(CodeQuery, name, value{kind: kindNumber, text: given}, allowed)
		return 0, []Mistake{m}
	}
	return n, nil
}
