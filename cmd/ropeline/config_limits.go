package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// limitFlags binds one rate limit.
func limitFlags(fs *pflag.FlagSet, r *limit.Rule) {
	bind(fs, r, limit.Fields)
	fs.Var(pageFile.At(&r.Response.Content), "content-file", "`file` with it")
}

// What the API shows of a rate limit, and means nothing in a file.
var broughtByLimits = []string{"id", "version", "created-on", "modified-on"}

// rateLimits reads the list of rate limits.
func (r *configReader) rateLimits(list ast.Node, cfg *config) []limit.Rule {
	if list == nil {
		return nil
	}
	const name = "rate-limits"
	items := r.list(list, "", name, "a list of rate limits is wanted, each starting with \"- name: NAME\"")
	rules := make([]limit.Rule, 0, len(items))
	for i, item := range items {
		rule := limit.Rule{}.WithDefaults()
		fs := pflag.NewFlagSet("rate limit", pflag.ContinueOnError)
		limitFlags(fs, &rule)
		field := fmt.Sprintf("%s[%d]", name, i)
		before := len(r.errs)
		var brought broughtNodes
		r.mapping(item, field, fs, brought.lists(broughtByLimits, lists{}))
		r.passOver(brought)
		if at, both := r.lines[field+".content"], r.lines[field+".content-file"]; at.line > 0 && both.line > 0 {
			r.fail(item, "content-file", fmt.Errorf("the content stands under \"content\" in line %d as well; keep one of the two", at.line))
		}
		for _, key := range []string{"name", "expression", "period", "requests-per-period"} {
			if _, ok := r.lines[field+"."+key]; !ok && len(r.errs) == before {
				r.fail(item, field, fmt.Errorf("every rate limit needs a line %q", key+":"))
			}
		}
		if len(r.errs) == before {
			rules = append(rules, rule)
			r.checkLimit(rules, field, cfg)
		}
	}
	return rules
}

// checkLimit says what is wrong with the last of some rate limits, which stands in the file
// under the name field.
func (r *configReader) checkLimit(rules []limit.Rule, field string, cfg *config) {
	err := catalog.CheckLimits(catalog.FileLimits(rules, time.Time{}), func(rule *limit.Rule) (int, error) {
		return httpfront.CheckLimit(rule, cfg.Front.Lists)
	})
	last := fmt.Sprintf("rate-limits[%d].", len(rules)-1)
	for _, err := range joined(err) {
		e, ok := errors.AsType[*room.FieldError](err)
		switch {
		case !ok:
			r.errs = append(r.errs, err)
		case e.Field == "rate-limits":
			r.failAll(e, "", "")
		case strings.HasPrefix(e.Field, last):
			of := *e
			of.Field = strings.TrimPrefix(e.Field, last)
			r.failAll(&of, "", field)
		}
	}
}
