package expr

import (
	"regexp"
	"strings"
	"sync"
	"testing"
)

// TestTableIsComplete holds that the table of TestMatch, which other tests go
// through as well, has each field, function and operator.
func TestTableIsComplete(t *testing.T) {
	var all strings.Builder
	for _, tt := range matching {
		all.WriteString(" " + tt.source + " ")
	}
	for _, what := range vocabulary() {
		if !hasWord(all.String(), what) {
			t.Errorf("there is no %s in the table of TestMatch", what)
		}
	}
}

// vocabulary returns all that stands for something.
func vocabulary() []string {
	words := append(keys(fields), keys(functions)...)
	words = append(words, keys(operators)...)
	return append(words, "strict wildcard", "and", "&&", "or", "||", "xor", "^^", "not", "!", "true", "false")
}

var wordPart = regexp.MustCompile(`^[a-zA-Z0-9_.]`)

// hasWord reports whether text has word, and not only as a part of another.
func hasWord(text, word string) bool {
	if !wordPart.MatchString(word) {
		return strings.Contains(text, word)
	}
	const apart = `([^a-zA-Z0-9_.]|^|$)`
	return regexp.MustCompile(apart + regexp.QuoteMeta(word) + apart).MatchString(text)
}

func TestMatchFromManyGoroutines(t *testing.T) {
	lists, r := testLists(), shopper()
	var wg sync.WaitGroup
	for _, tt := range matching {
		e := mustCompile(t, tt.source, lists)
		for range 4 {
			wg.Go(func() {
				for range 20 {
					if got := e.Match(r); got != tt.want {
						t.Errorf("%s: got %v, want %v", tt.source, got, tt.want)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}
