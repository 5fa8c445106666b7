package page

import (
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
func inputOf(name string) Input { return situations()[name] }

func newPage(cfg Config) *Page { return must(New(cfg)) }

// fill is Fill into a new State.
func fill(p *Page, in Input) *State {
	var s State
	p.Fill(&s, in)
	return &s
}

// must is for what a test sets up, and cannot do without.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
