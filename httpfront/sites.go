package httpfront

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/relay"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node/room"
)

// site is where a request goes that nothing keeps from the origins.
type site struct {
	group *upstream.Group
	body  int64 // longest request body; 0: no limit
}

// admits refuses a request whose body is longer than the site takes, as far as
// its head tells.
func (s *site) admits(r *request) http1.Refusal {
	if s.body > 0 && r.Length > s.body {
		return relay.BodyTooLong
	}
	return http1.Refusal{}
}

// sites finds the site of a request. It is immutable. It stands apart from rooms
// because a request has a site also where it has no room, or a suspended one. Both are
// found by a room.Table of the same routes, so that a request that one room holds back
// is not served as another one's.
type sites struct {
	rest   *site // of requests that no route takes
	routes room.Table[*site]
	groups []*upstream.Group // that of rest first, each once
}

func newSites(cfg *Config) (*sites, error) {
	if !cfg.hasOrigins() {
		return &sites{}, nil // nothing is served, other proxies are answered
	}
	var budget *upstream.Budget // nil: none
	if cfg.Limits.Origins > 0 {
		budget = upstream.NewBudget(cfg.Limits.Origins)
	}
	rest, err := newGroup(cfg, "", cfg.Origins, budget)
	errs := []error{err}
	t := &sites{
		rest:   &site{group: rest, body: cfg.Limits.Body},
		groups: []*upstream.Group{rest},
	}
	for _, r := range cfg.Routes {
		s := &site{group: rest, body: cmp.Or(r.Body, cfg.Limits.Body)}
		if len(r.Origins.Servers) > 0 {
			if s.group, err = newGroup(cfg, r.Name, r.Origins, budget); err != nil {
				errs = append(errs, err)
			}
			t.groups = append(t.groups, s.group)
		} else if r.Origins.Check != nil {
			errs = append(errs, fmt.Errorf("route %s: a check without origins to check", r.Name))
		}
		t.routes.Add(room.Route{Host: r.Host, Path: r.Path}, s)
		for _, also := range r.Also {
			t.routes.Add(also, s)
		}
	}
	return t, errors.Join(errs...)
}

// hasOrigins reports whether there is anything to proxy to, or is meant to be.
func (c *Config) hasOrigins() bool {
	has := func(o *Origins) bool { return len(o.Servers) > 0 || o.Check != nil }
	return has(&c.Origins) || slices.ContainsFunc(c.Routes, func(r Route) bool { return has(&r.Origins) })
}

func newGroup(cfg *Config, name string, o Origins, budget *upstream.Budget) (*upstream.Group, error) {
	return upstream.New(upstream.Config{
		Name:           name,
		Origins:        o.Servers,
		Check:          o.Check,
		TLS:            cfg.OriginTLS,
		Passive:        cfg.Passive,
		SlowStart:      cfg.SlowStart,
		AllowAddresses: cfg.AllowAddresses,
		Limits:         cfg.Limits.Upstream,
		Timeouts:       cfg.Timeouts.Upstream,
		Budget:         budget,
		Logger:         cfg.Logger,
	})
}

// find returns the site of a request.
func (t *sites) find(host, path string) *site {
	if s, ok := t.routes.Find(host, path); ok {
		return s
	}
	return t.rest
}
