package admin

import (
	"context"
	"slices"

	"github.com/ropeline/ropeline/node/catalog"
)

// listed is all rules of a room in their order: every request about rules is answered so.
func (c *Call) listed(r *catalog.Room) Answer {
	all := []members{}
	for i := range r.Rules {
		all = append(all, show(&r.Rules[i], ruleFields, c.now()))
	}
	return Answer{Result: all, List: true}
}

func (c *Call) writtenRules(r *catalog.Room, err error) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	return c.listed(r), nil
}

func listRules(_ context.Context, c *Call) (Answer, error) {
	r, err := c.room(c.api.mesh.Catalog())
	if err != nil {
		return Answer{}, err
	}
	return c.listed(r), nil
}

func createRule(ctx context.Context, c *Call) (Answer, error) {
	id, err := c.newID()
	if err != nil {
		return Answer{}, err
	}
	return c.writtenRules(c.edit(ctx, create, func(r *reader, is *catalog.Room) (part, error) {
		made := decode(r, c.body, placedFields, &placed[catalog.Rule]{of: *newRule()}, nil)
		made.of.ID, made.of.Version, made.of.Created = id, 1, c.now()
		i := made.put(r, &is.Rules, len(is.Rules), ruleCalling)
		return part{"rules", i}, nil
	}))
}

func changeRule(ctx context.Context, c *Call) (Answer, error) {
	return c.writtenRules(c.edit(ctx, change, func(r *reader, is *catalog.Room) (part, error) {
		i, err := c.rule(is, c.params["rule"])
		if err != nil {
			return part{}, err
		}
		was := placed[catalog.Rule]{of: is.Rules[i]}
		made := decode(r, c.body, placedFields, &placed[catalog.Rule]{of: *newRule()}, &was)
		if made.of.Rule != was.of.Rule {
			made.of.Version++
		}
		is.Rules = slices.Delete(is.Rules, i, i+1)
		i = made.put(r, &is.Rules, i, ruleCalling)
		return part{"rules", i}, nil
	}))
}

// replaceRules keeps those whose ids are given; all others are new.
func replaceRules(ctx context.Context, c *Call) (Answer, error) {
	return c.writtenRules(c.edit(ctx, replace, func(r *reader, is *catalog.Room) (part, error) {
		list := listing[catalog.Rule]{
			name: "rules", of: "rules", fields: ruleFields, was: is.Clone().Rules, id: ruleID,
			fresh: func() (catalog.Rule, error) {
				rule := *newRule()
				id, err := c.newID()
				rule.ID, rule.Version, rule.Created = id, 1, c.now()
				return rule, err
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
		var err error
		is.Rules, err = list.read(r, c.body)
		return part{}, err
	}))
}

func deleteRule(ctx context.Context, c *Call) (Answer, error) {
	return c.writtenRules(c.drop(ctx, func(is *catalog.Room) (*catalog.Room, error) {
		i, err := c.rule(is, c.params["rule"])
		if err != nil {
			return nil, err
		}
		is.Rules = slices.Delete(is.Rules, i, i+1)
		return is, nil
	}))
}

func ruleID(r *catalog.Rule) string { return r.ID.String() }

var ruleCalling = calling[catalog.Rule]{"the id", func(all []catalog.Rule, so string) (at []int) {
	for i := range all {
		if ruleID(&all[i]) == so {
			at = append(at, i)
		}
	}
	return at
}}

var placedFields = withPlace(ruleFields, ruleCalling)
