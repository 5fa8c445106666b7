package main

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node/settings"
)

// proxyNodes are the parts of a mapping, the file's or a room's, that say where
// its requests go.
type proxyNodes struct{ origins, check ast.Node }

func (n *proxyNodes) lists(more lists) lists {
	more["origins"], more["health-check"] = &n.origins, &n.check
	return more
}

// globalOrigins reads those of the file. A flag wins over them; the same said
// twice, under "origin" and "origins", is refused.
func (r *configReader) globalOrigins(n proxyNodes, fs *pflag.FlagSet, cfg *config) {
	o := &cfg.Proxy.Origins
	if n.origins != nil {
		servers := r.origins(n.origins, "origins")
		_, twice := r.lines["origin"]
		flag := fs.Lookup("origin")
		switch {
		case flag != nil && flag.Changed && !twice: // by the command line
		case twice:
			r.fail(n.origins, "origins", fmt.Errorf("the origins stand under \"origin\" in line %d as well; keep one of the two", r.lines["origin"].line))
		default:
			o.Servers, cfg.origins = servers, "origins"
		}
	}
	if n.check != nil {
		o.Check = r.healthCheck(n.check, "health-check")
	}
}

// roomOrigins reads those of a room, which stands in the file under the name
// field. base is what holds outside the list: a room with origins of its own has
// them checked as those outside are, if it says nothing else.
func (r *configReader) roomOrigins(n proxyNodes, field string, base httpfront.Origins) (o httpfront.Origins) {
	if n.origins != nil {
		o.Servers = r.origins(n.origins, field+".origins")
		o.Check = base.Check
	}
	if n.check != nil {
		if n.origins == nil {
			r.fail(n.check, "health-check", errors.New("a room is checked only where it has \"origins\" of its own; put this outside the list of rooms, or add them"))
			return o
		}
		o.Check = r.healthCheck(n.check, field+".health-check")
	}
	return o
}

// origins reads a list of origins, each an address with perhaps a weight, or a
// mapping of the two.
func (r *configReader) origins(node ast.Node, field string) []upstream.Origin {
	seq, ok := node.(*ast.SequenceNode)
	if !ok || len(seq.Values) == 0 {
		r.fail(node, "origins", fmt.Errorf("a list with at least one origin is wanted, each \"- url: http://HOST:PORT\" and perhaps \"weight: N\"; this is a %s", kindOf(node)))
		return nil
	}
	r.lines[field] = positionOf(node)
	var all []upstream.Origin
	for i, item := range seq.Values {
		name := fmt.Sprintf("%s[%d]", field, i)
		r.lines[name] = positionOf(item)
		if o, ok := r.origin(item, name); ok {
			all = append(all, o)
		}
	}
	return all
}

func (r *configReader) origin(node ast.Node, field string) (upstream.Origin, bool) {
	if _, ok := node.(ast.MapNode); !ok {
		text, err := scalars(node, false, false)
		if err != nil {
			r.fail(node, field, err)
			return upstream.Origin{}, false
		}
		o, err := upstream.ParseOrigin(text[0])
		if err != nil {
			r.fail(node, field, err)
		}
		return o, err == nil
	}
	var all []upstream.Origin
	weight := 0
	fs := pflag.NewFlagSet("origin", pflag.ContinueOnError)
	fs.Var(origins.At(&all), "url", "the address")
	fs.Var(settings.Int(1, upstream.WeightMax).At(&weight), "weight", "how many requests it gets for each of one with weight 1")
	before := len(r.errs)
	r.mapping(node, field, fs, nil)
	switch {
	case len(r.errs) > before:
		return upstream.Origin{}, false
	case len(all) != 1:
		r.fail(node, field, errors.New("every origin needs one address: \"url: http://HOST:PORT\""))
		return upstream.Origin{}, false
	case weight > 0:
		return all[0].WithWeight(weight), true
	}
	return all[0], true
}

// healthCheck reads one block of checks.
func (r *configReader) healthCheck(node ast.Node, field string) *upstream.Check {
	c := defaultCheck()
	fs := pflag.NewFlagSet("health-check", pflag.ContinueOnError)
	bind(fs, &c, checkFields)
	before := len(r.errs)
	r.mapping(node, field, fs, nil)
	if len(r.errs) > before {
		return nil
	}
	if c.Path == "" {
		r.fail(node, field, errors.New("what is requested is missing: \"path: /PATH\""))
	}
	if c.Timeout > c.Interval {
		r.fail(node, field, fmt.Errorf("timeout %s is longer than interval %s; a check must be over when the next one begins", settings.Span(c.Timeout), settings.Span(c.Interval)))
	}
	return &c
}
