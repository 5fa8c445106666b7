package page

import (
	"strings"
	"testing"

	"github.com/ropeline/ropeline/httpfront/page/pagetest"
)

var noon = pagetest.Noon

func situations() map[string]Input {
	all := make(map[string]Input)
	for name, s := range pagetest.Situations() {
		all[name] = Input{Settings: s.Settings, Verdict: s.Verdict, Down: s.Down, Now: noon}
	}
	return all
}

// inputOf is one of them.
func inputOf(t testing.TB, name string) Input {
	t.Helper()
	in, ok := situations()[name]
	if !ok {
		t.Fatalf("there is no situation %q", name)
	}
	return in
}

func newPage(t testing.TB, cfg Config) *Page {
	t.Helper()
	return must(New(cfg))
}

// fill is Fill into a new State.
func fill(p *Page, in Input) *State {
	var s State
	p.Fill(&s, in)
	return &s
}

// fileName makes a name of a file of the name of a test.
func fileName(name string) string { return strings.ReplaceAll(name, " ", "-") }

// must is for what a test sets up, and cannot do without.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
