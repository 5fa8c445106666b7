package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront/expr"
	"github.com/ropeline/ropeline/node/room"
)

// frontConfig is what rules of all rooms go by.
type frontConfig struct {
	Lists                expr.Lists // in a file only
	CountryHeader        string
	VerdictCountryHeader string
	UnknownHosts         string
}

// What becomes of requests for hosts that no room is for.
const (
	hostsPass   = "pass"
	hostsRefuse = "refuse"
)

func (c *frontConfig) bind(fs *pflag.FlagSet) {
	fs.Var(enumValue[string]{&c.UnknownHosts, []string{hostsPass, hostsRefuse}}, "unknown-hosts", "requests for hosts that no room is for: pass to the site without a queue, or refuse")
	fs.Var(fieldValue{&c.CountryHeader}, "country-header", "the header in which trusted proxies tell the visitor's country, two letters, for rules to ask")
	fs.Var(fieldValue{&c.VerdictCountryHeader}, "verdict-country-header", "the same for proxies that ask for verdicts, all of which have to replace what visitors send in it")
}

// pageFlags binds what a room says of its page, but for a page that stands in the
// configuration file itself.
func pageFlags(fs *pflag.FlagSet, f *room.Front) {
	fs.Var(pageFileValue{&f.CustomPage}, "custom-page-file", "`file` with the waiting page, a Mustache template (default: the built-in page)")
	fs.Var(languageValue{&f.Language}, "default-template-language", "the language of visitors who ask for none that there is (default: en-US)")
	fs.Var(messageValue{&f.Message}, "message", "what all who wait are told, up to 300 characters of plain text")
	fs.VarPF(truthValue{dst: &f.NoJSON, not: true}, "json-response-enabled", "", "programs that ask for JSON get it; false: they get the page").NoOptDefVal = "true"
	fs.Var(sourcesValue{&f.FrameAncestors}, "frame-ancestors", "who may show the waiting page in a frame: self, none, or sites such as https://shop.example (default: self)")
}

// ruleFlags binds one rule of a room.
func ruleFlags(fs *pflag.FlagSet, r *room.Rule) {
	fs.StringVar(&r.Expression, "expression", "", "which requests it is about")
	fs.Var(actionValue{&r.Action}, "action", "what becomes of them: bypass")
	fs.StringVar(&r.Description, "description", "", "for the operator")
	fs.VarPF(truthValue{dst: &r.Disabled, not: true}, "enabled", "", "false: as if it were not there")
}

// hosts returns the hosts that are served; nil if all are.
func (c *frontConfig) hosts(rooms []room.Settings) []string {
	if c.UnknownHosts != hostsRefuse {
		return nil
	}
	return hostsOf(rooms)
}

// hostsOf returns the hosts that rooms are for; nil if one of them is for every host.
func hostsOf(rooms []room.Settings) (hosts []string) {
	seen := map[string]bool{}
	for i := range rooms {
		for r := range rooms[i].Routes() {
			if r.Host == "" {
				return nil
			}
			if !seen[r.Host] {
				seen[r.Host] = true
				hosts = append(hosts, r.Host)
			}
		}
	}
	return hosts
}

// hostsTold is how many hosts a line of the log names.
const hostsTold = 5

// warnOfHosts warns where every room is for a host of its own, and requests for others
// reach the site all the same: that goes around the limit if the site serves them too.
func (c *frontConfig) warnOfHosts(rooms []room.Settings, log *slog.Logger) {
	if hosts := hostsOf(rooms); len(hosts) > 0 && c.UnknownHosts != hostsRefuse {
		log.Warn("every room names a host: requests for any other host, or for the address of this node, go to the site without a queue; "+
			"--unknown-hosts refuse keeps them out, a room without a host has them queue", "hosts", len(hosts), "such_as", hosts[:min(hostsTold, len(hosts))])
	}
}

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
	if line, twice := r.lines[prefix+file]; err == nil && twice {
		err = fmt.Errorf("the page stands under %q in line %d as well; keep one of the two", file, line)
	}
	if err != nil {
		r.fail(node, html, err)
		return "", false
	}
	if flag := fs.Lookup(file); flag != nil && flag.Changed {
		return "", false
	}
	r.lines[prefix+html] = lineOf(node)
	return words[0], true
}
