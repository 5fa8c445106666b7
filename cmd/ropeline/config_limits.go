package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// limitsConfig is what is said of rate limits.
type limitsConfig struct {
	Memory int64        // bytes
	Rules  []limit.Rule // in a file only
}

// What counting may take, in bytes.
const (
	minLimitMemory = 1 << 20
	maxLimitMemory = 64 << 30
)

func defaultLimits() limitsConfig { return limitsConfig{Memory: node.DefaultLimitMemory} }

func (c *limitsConfig) bind(fs *pflag.FlagSet) {
	fs.Var(boundedSize{sizeValue{&c.Memory}, minLimitMemory, maxLimitMemory}, "limit-memory", "memory that counting for rate limits may take, from when there is one: 1MiB to 64GiB")
}

// boundedSize is a number of bytes between two others.
type boundedSize struct {
	sizeValue
	min, max int64
}

func (v boundedSize) Set(s string) error {
	was := *v.dst
	err := v.sizeValue.Set(s)
	if err == nil && v.min <= *v.dst && *v.dst <= v.max {
		return nil
	}
	*v.dst = was
	return fmt.Errorf("%q is not allowed: a number of bytes from %s to %s, such as 256MiB", s, sizeValue{&v.min}, sizeValue{&v.max})
}

// limitFlags binds one rate limit.
func limitFlags(fs *pflag.FlagSet, r *limit.Rule) {
	fs.Var(nameValue{&r.Name, "-_.", limit.MaxName}, "name", "unique among rate limits; in headers, metrics and logs")
	fs.StringVar(&r.Description, "description", "", "for the operator")
	fs.VarPF(truthValue{dst: &r.Disabled, not: true}, "enabled", "", "false: as if it were not there")
	fs.StringVar(&r.Expression, "expression", "", "which requests it is about")
	fs.Var(textsValue{&r.Characteristics}, "characteristics", "what counts together (default: all requests)")
	fs.Var(intValue{&r.IPv4Prefix, 8, 32}, "ipv4-prefix", "bits of an IPv4 address that count")
	fs.Var(intValue{&r.IPv6Prefix, 16, 128}, "ipv6-prefix", "bits of an IPv6 address that count")
	fs.Var(durationValue{&r.Period, limit.MinPeriod, limit.MaxPeriod}, "period", "the time in which requests are counted")
	fs.Var(intValue{&r.RequestsPerPeriod, 1, limit.MaxRequests}, "requests-per-period", "how many may come")
	fs.Var(durationValue{&r.MitigationTimeout, 0, limit.MaxMitigation}, "mitigation-timeout", "for how long requests are limited then; 0s: until there would be few enough")
	fs.StringVar(&r.CountingExpression, "counting-expression", "", "which of them are counted (default: all)")
	fs.Var(enumValue[limit.Action]{&r.Action, []limit.Action{limit.Block, limit.Queue, limit.Log}}, "action", "what becomes of requests beyond: block, queue or log")
	fs.Var(enumValue[limit.Scope]{&r.Scope, []limit.Scope{limit.Mesh, limit.Site}}, "scope", "what counts together: the mesh or each site")
	fs.Var(intValue{&r.Response.StatusCode, 400, 499}, "status-code", "of the answer to who is blocked")
	fs.StringVar(&r.Response.Content, "content", "", "of that answer")
	fs.Var(pageFileValue{&r.Response.Content}, "content-file", "`file` with it")
	fs.Var(enumValue[string]{&r.Response.ContentType, limit.ContentTypes}, "content-type", "what it is")
}

// textsValue is a list of texts in which commas may stand.
type textsValue struct{ dst *[]string }

func (v textsValue) String() string {
	if v.dst == nil {
		return ""
	}
	return strings.Join(*v.dst, ", ")
}
func (v textsValue) Type() string { return "text" }
func (v textsValue) clear()       { *v.dst = nil }
func (v textsValue) Set(s string) error {
	*v.dst = append(*v.dst, s)
	return nil
}

// limitRules returns the rules of a file with their ids.
func limitRules(rules []limit.Rule) []limit.Rule {
	out := make([]limit.Rule, len(rules))
	for i, l := range catalog.FileLimits(rules, time.Time{}) {
		out[i] = l.Rule
	}
	return out
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
		if line, both := r.lines[field+".content"], r.lines[field+".content-file"]; line > 0 && both > 0 {
			r.fail(item, "content-file", fmt.Errorf("the content stands under \"content\" in line %d as well; keep one of the two", line))
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
	err := catalog.CheckLimits(catalog.FileLimits(rules, time.Time{}), func(rule *limit.Rule) error {
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
