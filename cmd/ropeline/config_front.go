package main

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/node/room"
)

// rules reads a list of rules.
func (r *configReader) rules(node ast.Node, prefix string) []room.Rule {
	const name = "rules"
	items := r.list(node, prefix, name, "a list of rules is wanted, each starting with \"- expression: EXPRESSION\"")
	rules := make([]room.Rule, len(items))
	for i, item := range items {
		rules[i].Action = room.Bypass
		fs := pflag.NewFlagSet("rule", pflag.ContinueOnError)
		ruleFlags(fs, &rules[i])
		field := fmt.Sprintf("%s%s[%d]", prefix, name, i)
		before := len(r.errs)
		var brought broughtNodes
		r.mapping(item, field, fs, brought.lists(broughtByRules, lists{}))
		r.passOver(brought)
		if _, ok := r.lines[field+".expression"]; !ok && len(r.errs) == before {
			r.fail(item, field, errors.New("every rule needs a line \"expression:\""))
		}
		if len(r.errs) > before {
			// Stands in for it, so that the others keep their numbers.
			rules[i] = room.Rule{Expression: "false", Action: room.Bypass, Disabled: true}
		}
	}
	return rules
}

// page returns the page that stands in the file, which node is nil of if there is
// none. One that the command line names wins over it.
func (r *configReader) page(node ast.Node, prefix string, fs *pflag.FlagSet) (text string, ok bool) {
	const html, file = "custom-page-html", "custom-page-file"
	if node == nil {
		return "", false
	}
	words, err := scalars(node, false, false)
	if at, twice := r.lines[prefix+file]; err == nil && twice {
		err = fmt.Errorf("the page stands under %q in line %d as well; keep one of the two", file, at.line)
	}
	if err != nil {
		r.fail(node, html, err)
		return "", false
	}
	if flag := fs.Lookup(file); flag != nil && flag.Changed {
		return "", false
	}
	r.lines[prefix+html] = positionOf(node)
	return words[0], true
}
