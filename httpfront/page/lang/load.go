package lang

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

//go:embed texts/*.json
var files embed.FS

// file is a language as it is written down.
type file struct {
	Name      string `json:"name"`
	Direction string `json:"direction"`

	// Names are other tags of the language than its own and its first subtag, with spaces between:
	// codes that were retired, and standards that are written so alike that nobody takes them for
	// foreign. ReadBy are the languages whose readers mostly read this one too, after the language
	// matching data of CLDR 48.
	Names  string `json:"names"`
	ReadBy string `json:"readBy"`

	Numbers    fileNumbers                  `json:"numbers"`
	Regions    map[string]fileNumbers       `json:"regions"` // by region codes with spaces between them
	Clock      string                       `json:"clock"`
	DayPeriods []string                     `json:"dayPeriods"`
	Texts      map[string]string            `json:"texts"`
	Patterns   map[string]string            `json:"patterns"`
	Counts     map[string]map[string]string `json:"counts"` // by plural form
}

// fileNumbers is how numbers are written. What is left out is as in English.
type fileNumbers struct {
	Zero            string `json:"zero"`
	Group           string `json:"group"`
	MinimumGrouping int    `json:"minimumGrouping"`
	Lakh            bool   `json:"lakh"`
}

// regional is a language with the numbers of another region than its own.
type regional struct {
	*Language
	region string // such as "CH"
}

// load reads and checks all languages of a folder "texts", and returns them in
// the order of their tags. The error names every mistake of every file.
func load(from fs.FS) ([]*Language, []regional, error) {
	names, err := fs.Glob(from, "texts/*.json")
	if err != nil {
		return nil, nil, err
	}
	var (
		all   []*Language
		other []regional
		errs  []error
	)
	for _, name := range names {
		src, err := fs.ReadFile(from, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r := reader{}
		l, more := r.read(strings.TrimSuffix(path.Base(name), ".json"), src)
		for _, err := range r.errs {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		all, other = append(all, l), append(other, more...)
	}
	slices.SortFunc(all, func(a, b *Language) int { return cmp.Compare(a.tag, b.tag) })
	return all, other, errors.Join(errs...)
}

// reader makes a language of a file, and gathers what is wrong with it.
type reader struct{ errs []error }

func (r *reader) fail(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

func (r *reader) check(err error, what string) {
	if err != nil {
		r.fail("%s: %w", what, err)
	}
}

func (r *reader) read(tag string, src []byte) (*Language, []regional) {
	w := &wording{tag: tag}
	l := &Language{wording: w}
	var f file
	d := json.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		r.fail("%w", err)
		return l, nil
	}
	rules, err := language.Parse(tag)
	r.check(err, "its name must be a language tag")
	w.rules, w.name, w.direction = rules, f.Name, f.Direction
	w.names, w.readBy = strings.Fields(f.Names), strings.Fields(f.ReadBy)
	if w.name == "" {
		r.fail("name is missing")
	}
	if w.direction != "ltr" && w.direction != "rtl" {
		r.fail("direction %q must be ltr or rtl", w.direction)
	}
	w.clock, err = parseClock(f.Clock, f.DayPeriods)
	r.check(err, "clock")
	r.texts(w, f.Texts)
	r.joints(w, f.Patterns)
	r.counts(w, f.Counts)
	l.numbers = r.numbers("numbers", f.Numbers)
	return l, r.regions(l, f)
}

func (r *reader) texts(w *wording, given map[string]string) {
	for t, spec := range textSpecs {
		w.texts[t] = given[spec.key]
		r.plain(spec.key, given[spec.key], spec.kind)
		if strings.ContainsAny(given[spec.key], "{}") {
			r.fail("%s: %q can have no placeholders", spec.key, given[spec.key])
		}
		delete(given, spec.key)
	}
	unknown(r, given)
}

func (r *reader) joints(w *wording, given map[string]string) {
	for j, spec := range jointSpecs {
		w.joints[j] = r.pattern(spec.key, given[spec.key], spec.holes[:])
		if !w.joints[j].holds(2) {
			r.fail("%s: %q needs {%s} and {%s}", spec.key, given[spec.key], spec.holes[0], spec.holes[1])
		}
		delete(given, spec.key)
	}
	unknown(r, given)
}

func (r *reader) counts(w *wording, given map[string]map[string]string) {
	for c, spec := range countSpecs {
		used := uses(w.rules, spec.low, spec.high)
		for form, name := range formNames {
			key := spec.key + "." + name
			text, ok := given[spec.key][name]
			delete(given[spec.key], name)
			switch n := used[form]; {
			case !ok && plural.Form(form) == plural.Other:
				r.fail("%s is missing", key)
			case !ok:
				// Other stands in for it; that it may is for the test to say.
			case n == 0 && plural.Form(form) != plural.Other:
				r.fail("%s: no number from %d to %d has that form", key, spec.low, spec.high)
			default:
				p := r.pattern(key, text, spec.holes)
				// Only a form that one number alone has may leave that number out.
				if !p.holds(len(spec.holes)) && (n != 1 || len(spec.holes) > 1) {
					r.fail("%s: %q needs {%s}", key, text, strings.Join(spec.holes, "} and {"))
				}
				w.counts[c][form] = p
			}
		}
		for _, name := range slices.Sorted(maps.Keys(given[spec.key])) {
			r.fail("%s.%s: there is no such form", spec.key, name)
		}
		delete(given, spec.key)
	}
	unknown(r, given)
}

// formNames are CLDR's.
var formNames = [plural.Many + 1]string{
	plural.Other: "other", plural.Zero: "zero", plural.One: "one",
	plural.Two: "two", plural.Few: "few", plural.Many: "many",
}

// uses returns how many of the numbers from low to high have each plural form.
func uses(rules language.Tag, low, high int) (n [plural.Many + 1]int) {
	for i := low; i <= high; i++ {
		n[plural.Cardinal.MatchPlural(rules, i, 0, 0, 0, 0)]++
	}
	return n
}

func (r *reader) pattern(key, s string, holes []string) pattern {
	r.plain(key, s, pieces)
	p, err := parsePattern(s, holes)
	r.check(err, key)
	return p
}

func (r *reader) numbers(key string, f fileNumbers) numbers {
	n := numbers{zero: '0', group: f.Group, first: max(1, f.MinimumGrouping), lakh: f.Lakh}
	if f.Zero != "" {
		n.zero, _ = utf8.DecodeRuneInString(f.Zero)
	}
	if !unicode.IsDigit(n.zero) || !unicode.IsDigit(n.zero+9) || unicode.IsDigit(n.zero-1) {
		r.fail("%s: zero %q is not the digit 0", key, f.Zero)
	}
	if !slices.Contains([]string{",", ".", "’", "٬", "\u00a0", "\u202f"}, f.Group) {
		r.fail("%s: group %q is no separator; a space must be U+00A0 or U+202F", key, f.Group)
	}
	return n
}

func (r *reader) regions(l *Language, f file) (all []regional) {
	for _, codes := range slices.Sorted(maps.Keys(f.Regions)) {
		n := f.Regions[codes]
		other := &Language{wording: l.wording, numbers: r.numbers(codes, n)}
		for code := range strings.FieldsSeq(codes) {
			if _, err := language.ParseRegion(code); err != nil {
				r.fail("regions: %q: %w", code, err)
			}
			all = append(all, regional{other, code})
		}
	}
	return all
}

// plain checks that a text is there, short enough, and of characters that mean
// nothing in HTML and JSON.
func (r *reader) plain(key, s string, k kind) {
	switch n := utf8.RuneCountInString(s); {
	case s == "":
		r.fail("%s is missing", key)
	case n > longest[k]:
		r.fail("%s has %d characters, %d more than fit", key, n, n-longest[k])
	case !utf8.ValidString(s) || strings.ContainsFunc(s, special):
		r.fail("%s: %q has a character that means something in HTML or JSON; quotes must be ’ “ ” or the language’s own", key, s)
	case strings.TrimSpace(s) != s:
		r.fail("%s: %q begins or ends with a space", key, s)
	}
}

func special(c rune) bool {
	return unicode.IsControl(c) || strings.ContainsRune("<>&\"'\\\u2028\u2029", c)
}

// unknown complains about the keys that are left.
func unknown[V any](r *reader, left map[string]V) {
	for _, key := range slices.Sorted(maps.Keys(left)) {
		r.fail("%s: there is no such key", key)
	}
}
