package page

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/cbroglie/mustache"

	"github.com/ropeline/ropeline/node/nearest"
)

const (
	// TemplateMax is how many bytes a template may have: the documented limit of
	// hosted waiting rooms, so that every template that operators have can be
	// brought along.
	TemplateMax = 1 << 20
	// outputMax leaves room for values that are longer than their names.
	outputMax = 2 * TemplateMax
)

// Template is an operator's page in Mustache, of the variables in [Variables]. It
// may be used by many goroutines at once.
//
// How long it takes to render is bounded by the number of its tags and of sections
// inside each other, and not by a clock: a busy machine makes no other page.
//
// A template is given booleans, numbers and texts, nothing else: no lists, no
// functions, no files. Texts are escaped when they are given, so that three braces
// insert nothing raw but HTML of our own.
type Template struct {
	tmpl *mustache.Template
	uses []*Variable // those that it names
	pool sync.Pool   // of *rendering
}

// Warning says what in a template will not do what was probably meant.
type Warning struct {
	Line    int // from 1
	Name    string
	Nearest string // the variable that was probably meant; may be empty

	Refreshes bool // the name is known, and in an element that loads the page again
}

// How templates that were written for elsewhere have browsers load them again.
var (
	metas     = regexp.MustCompile(`(?i)<meta\b[^<>]*>`)
	refreshes = regexp.MustCompile(`(?is)http-equiv\s*=\s*["']?refresh\b.*\{\{[{&\s]*refreshIntervalSeconds\b|\{\{[{&\s]*refreshIntervalSeconds\b.*http-equiv\s*=\s*["']?refresh\b`)
)

// guardRefreshes has a template send its refreshes only where there is an interval: after 0 seconds browsers would load the page
// again and again.
func guardRefreshes(src string) (string, []Warning) {
	var warnings []Warning
	var b strings.Builder
	done := 0
	for _, at := range metas.FindAllStringIndex(src, -1) {
		if meta := src[at[0]:at[1]]; refreshes.MatchString(meta) {
			warnings = append(warnings, Warning{Line: 1 + strings.Count(src[:at[0]], "\n"), Name: "refreshIntervalSeconds", Refreshes: true})
			b.WriteString(src[done:at[0]] + "{{#refreshIntervalSeconds}}" + meta + "{{/refreshIntervalSeconds}}")
			done = at[1]
		}
	}
	return b.String() + src[done:], warnings
}

func (w Warning) String() string {
	if w.Refreshes {
		return fmt.Sprintf("line %d: a refresh by %q, which is left out where that is 0; the field Refresh does the same", w.Line, w.Name)
	}
	text := fmt.Sprintf("line %d: %q is not known here and shows nothing", w.Line, w.Name)
	if w.Nearest != "" {
		text += fmt.Sprintf("; did you mean %q?", w.Nearest)
	}
	return text
}

// Compile reads a template of up to 1 MiB with up to 10,000 tags. Unknown variables are no error, since a
// template may have come from elsewhere, but there is a warning for each. Errors
// name the line.
func Compile(src string) (*Template, []Warning, error) {
	t, warnings, err := compile(src)
	if err == nil {
		err = t.try()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("template: %w", err)
	}
	return t, warnings, nil
}

func compile(src string) (*Template, []Warning, error) {
	if len(src) > TemplateMax {
		return nil, nil, fmt.Errorf("it has %d bytes; want at most %d", len(src), TemplateMax)
	}
	if !utf8.ValidString(src) {
		return nil, nil, errors.New("it is not in UTF-8")
	}
	src, warnings := guardRefreshes(src)
	tags, err := readTags(src)
	if err != nil {
		return nil, nil, err
	}
	tmpl, err := mustache.ParseStringPartials(src, noPartials{})
	if err != nil {
		return nil, nil, err
	}
	tmpl.Escape(func(escaped string) string { return escaped })
	t := &Template{tmpl: tmpl}
	t.pool.New = func() any { return &rendering{values: make(map[string]any, len(t.uses))} }
	return t, append(warnings, t.resolve(tags)...), nil
}

// meantMax is for how many unknown variables it is found out which was meant.
const meantMax = 100

// resolve finds the variables of tags, and returns warnings about the others.
func (t *Template) resolve(tags []tag) []Warning {
	var warnings []Warning
	var known []string
	for i := range variables {
		known = append(known, variables[i].Name)
	}
	seen := map[string]bool{".": true}
	for _, tag := range tags {
		if seen[tag.name] || tag.sigil == '/' {
			continue
		}
		seen[tag.name] = true
		if i, ok := indexOf[tag.name]; ok {
			t.uses = append(t.uses, &variables[i])
			continue
		}
		w := Warning{Line: tag.line, Name: tag.name}
		if len(warnings) >= meantMax {
			warnings = append(warnings, w)
			continue
		}
		if meant, ok := nearest.Name(tag.name, known); ok {
			w.Nearest = meant
		}
		warnings = append(warnings, w)
	}
	return slices.Clip(warnings)
}

// noPartials has no partial, for the library would look for files.
type noPartials struct{}

// Get returns an error always.
func (noPartials) Get(name string) (string, error) {
	return "", fmt.Errorf("partial %q: templates cannot include others", name)
}

// rendering is what making a page of a template takes.
type rendering struct {
	values map[string]any
	out    limitedWriter
	text   []byte
}

// append appends the page, or returns dst and an error.
func (t *Template) append(dst []byte, s *State) ([]byte, error) {
	r := t.pool.Get().(*rendering)
	defer t.pool.Put(r)
	for _, v := range t.uses {
		r.values[v.Name] = r.value(v, s)
	}
	r.out = limitedWriter{b: dst, end: len(dst) + outputMax}
	err := t.tmpl.FRender(&r.out, r.values)
	out := r.out
	r.out = limitedWriter{}
	if err = cmp.Or(out.err, err); err != nil {
		return dst, err
	}
	return out.b, nil
}

// value is v as templates get it.
func (r *rendering) value(v *Variable, s *State) any {
	switch v.Type {
	case Bool:
		return v.boolean(s)
	case Int:
		return v.integer(s)
	}
	r.text = v.appendText(r.text[:0], s)
	if v.Type != HTML {
		r.text = htmlEscapes.escape(r.text, 0)
	}
	return string(r.text)
}

// limitedWriter appends up to a length. The library passes errors of writes on only
// for what stands between tags, so it remembers its first one.
type limitedWriter struct {
	b   []byte
	end int // the greatest length of b
	err error
}

// Write appends p, or nothing.
func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.err == nil && len(p) > w.end-len(w.b) {
		w.err = fmt.Errorf("it makes a page of more than %d bytes", outputMax)
	}
	if w.err != nil {
		return 0, w.err
	}
	w.b = append(w.b, p...)
	return len(p), nil
}

// try renders the template in every state that a preview can show, so that most of
// what can go wrong does so before a visitor sees it.
func (t *Template) try() error {
	var buf []byte
	for sample := range samples() {
		var s State
		defaults().Fill(&s, sample.input(time.Time{}))
		out, err := t.append(buf[:0], &s)
		if err != nil {
			return fmt.Errorf("rendered %s: %w", sample, err)
		}
		buf = out
	}
	return nil
}
