package admin

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/ropeline/ropeline/node/catalog"
)

// listed is all rules of a room in their order: every request about rules is answered so.
func (c *Call) listed(r *catalog.Room) Answer {
	return Answer{Result: showAll(r.Rules, ruleFields, c.now()), List: true}
}

func (c *Call) writtenRules(r *catalog.Room, err error) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	return c.listed(r), nil
}

func listRules(c *Call, r *catalog.Room) (Answer, error) { return c.listed(r), nil }

func createRule(ctx context.Context, c *Call) (Answer, error) {
	return c.writtenRules(c.edit(ctx, create, func(r *reader, is *catalog.Room) (part, error) {
		return part{"rules", ruleList.create(c, r, &is.Rules)}, nil
	}))
}

func changeRule(ctx context.Context, c *Call) (Answer, error) {
	return c.writtenRules(c.edit(ctx, change, func(r *reader, is *catalog.Room) (part, error) {
		i, err := c.rule(is)
		if err != nil {
			return part{}, err
		}
		return part{"rules", ruleList.change(c, r, &is.Rules, i)}, nil
	}))
}

// replaceRules keeps those whose ids are given; all others are new.
func replaceRules(ctx context.Context, c *Call) (Answer, error) {
	return c.writtenRules(c.edit(ctx, replace, func(r *reader, is *catalog.Room) (part, error) {
		return part{}, ruleList.replace(c, r, &is.Rules)
	}))
}

func deleteRule(ctx context.Context, c *Call) (Answer, error) {
	return c.writtenRules(c.drop(ctx, func(is *catalog.Room) (*catalog.Room, error) {
		i, err := c.rule(is)
		if err != nil {
			return nil, err
		}
		is.Rules = slices.Delete(is.Rules, i, i+1)
		return is, nil
	}))
}

var ruleList = &ordered[catalog.Rule]{
	name: "rules", of: "rules", by: "the id", fields: ruleFields, placed: withPlace(ruleFields, "the id"),
	id:    func(r *catalog.Rule) string { return r.ID.String() },
	alike: "expression", like: func(r *catalog.Rule) string { return r.Expression },
	fresh: func(c *Call) catalog.Rule {
		rule := *newRule()
		rand.Read(rule.ID[:])
		rule.Version, rule.Created = 1, c.now()
		return rule
	},
	again: func(was *catalog.Rule) catalog.Rule {
		rule := *newRule()
		rule.ID, rule.Version, rule.Created = was.ID, was.Version, was.Created
		return rule
	},
	changed: func(was, is *catalog.Rule) {
		if is.Rule != was.Rule {
			is.Version++
		}
	},
}
