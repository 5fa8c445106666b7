package lang

import (
	"fmt"
	"slices"
	"sync"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

// Tag is a BCP 47 tag of one of the languages, such as "de-DE".
type Tag = string

// English is the language of whom no other suits.
const English Tag = "en-US"

// Language is one language, with the numbers of one region. Get one by Of, All
// or Match; the zero value is of no use.
type Language struct {
	*wording
	numbers numbers
}

// wording is what all regions of a language share.
type wording struct {
	tag, name, direction string
	names, readBy        []string // see file
	texts                [textCount]string
	joints               [jointCount]pattern
	counts               [countCount]forms
	rules                language.Tag // for plural forms
	clock                clock
}

// forms are a pattern for each plural form of a language. The form of n comes
// from CLDR's rule for cardinal numbers; where it has no pattern, Other has.
type forms [plural.Many + 1]pattern

// Tag returns the tag of the texts, such as "de-DE", for the lang attribute.
func (l *Language) Tag() string { return l.tag }

// Name returns what the language calls itself, such as "Deutsch".
func (l *Language) Name() string { return l.name }

// Dir returns "ltr" or "rtl", for the dir attribute.
func (l *Language) Dir() string { return l.direction }

// Text returns a text without numbers in it.
func (l *Language) Text(t Text) string { return l.texts[t] }

// library is all that there is, as loaded.
type library struct {
	all    []*Language
	byTag  map[Tag]*Language
	wanted map[string]candidate
}

// Load reads all languages, once, and reports every mistake in their texts. Whoever
// serves visitors calls it first: all else here loads them too when it is needed, and
// panics where they cannot be.
func Load() error {
	_, err := read()
	return err
}

// loaded returns the library.
func loaded() *library {
	lib, err := read()
	if err != nil {
		panic(err.Error())
	}
	return lib
}

// read loads the library at its first call.
var read = sync.OnceValues(func() (*library, error) {
	all, regional, err := load(files)
	if err != nil {
		return nil, fmt.Errorf("texts of languages: %w", err)
	}
	lib := &library{all: all, byTag: make(map[Tag]*Language, len(all))}
	for _, l := range all {
		lib.byTag[l.tag] = l
	}
	lib.wanted = wanted(lib.byTag, regional)
	return lib, nil
})

// All returns all languages in the order of their tags.
func All() []*Language { return slices.Clone(loaded().all) }

// Of returns the language with that tag, spelled as Tag returns it, and nil if
// there is none. Its numbers are those of the tag's own region.
func Of(tag Tag) *Language { return loaded().byTag[tag] }

// Tags returns the tags of all languages in order.
func Tags() []string {
	tags := make([]string, 0, len(loaded().all))
	for _, l := range loaded().all {
		tags = append(tags, l.tag)
	}
	return tags
}
