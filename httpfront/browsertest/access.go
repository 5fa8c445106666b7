package browsertest

import _ "embed" // for axe-core

// axe is axe-core, a checker of accessibility; testdata/axe says where it is from.
//
//go:embed testdata/axe/axe.min.js
var axe string

// fewestRules is how many of all rules the checker must have found kept, or it has not looked.
const fewestRules = 10

// finding is what the checker says of a rule.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// CheckAccess has the page checked by axe-core, the best practices among its rules too. Only
// trifles are let pass.
func (b *Tab) CheckAccess() {
	b.T.Helper()
	b.check("", fewestRules)
}

// CheckColours is CheckAccess by the rules about colours alone, for a page that is looked at in other ones: all
// other rules find the same.
func (b *Tab) CheckColours() {
	b.T.Helper()
	b.check("runOnly: ['color-contrast', 'link-in-text-block'],", 1)
}

func (b *Tab) check(only string, fewest int) {
	b.T.Helper()
	b.Run(axe + ";0")
	found := See[struct{ Violations, Passes []finding }](b, `axe.run({`+only+` resultTypes: ['violations']}).then(r => ({
		violations: r.violations.map(v => ({...v, nodes: v.nodes.slice(0, 3)})), passes: r.passes.map(p => ({id: p.id}))}))`)
	if len(found.Passes) < fewest {
		b.T.Errorf("the checker has checked %d rules only", len(found.Passes))
	}
	for _, f := range found.Violations {
		if f.Impact != "minor" {
			b.T.Errorf("%s (%s): %s: %v", f.ID, f.Impact, f.Help, f.Nodes)
		}
	}
}
