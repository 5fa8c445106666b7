package admin

import (
	"context"
	"fmt"
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
		i := made.put(r, &is.Rules, len(is.Rules), ruleID)
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
		i = made.put(r, &is.Rules, i, ruleID)
		return part{"rules", i}, nil
	}))
}

// replaceRules keeps those whose ids are given; all others are new.
func replaceRules(ctx context.Context, c *Call) (Answer, error) {
	const name = "rules"
	return c.writtenRules(c.edit(ctx, replace, func(r *reader, is *catalog.Room) (part, error) {
		if c.body.kind != kindList {
			return part{}, bad(refused(CodeType, "the body", c.body, "a list of rules"))
		}
		was := is.Clone()
		is.Rules = nil
		for i, item := range c.body.items {
			made, blank := (*catalog.Rule)(nil), newRule()
			r.within(fmt.Sprintf("%s[%d]", name, i), item, func() {
				given, there := item.get("id")
				if there && given.text != "" {
					made = r.knownRule(was, is, given)
				}
				if made != nil {
					blank.ID, blank.Version, blank.Created = made.ID, made.Version, made.Created
				}
				rule := decode(r, item, ruleFields, blank, made)
				switch {
				case made == nil:
					rule.Version, rule.Created = 1, c.now()
					var err error
					if rule.ID, err = c.newID(); err != nil {
						r.mistakes = append(r.mistakes, Mistake{Code: CodeFailed, Message: err.Error()})
					}
				case rule.Rule != made.Rule:
					rule.Version++
				}
				is.Rules = append(is.Rules, rule)
			})
		}
		r.body = value{kind: kindObject, members: []member{{name, c.body}}}
		return part{}, nil
	}))
}

// knownRule returns the rule of an id that was given in a list.
func (r *reader) knownRule(was, is *catalog.Room, given value) *catalog.Rule {
	id, err := catalog.ParseID(given.text)
	switch {
	case err != nil || was.Rule(id) == nil:
		return nil // of another room: it is a copy
	case is.Rule(id) != nil:
		r.fail(CodeTwice, "id", given, "each id once")
		return nil
	}
	return was.Rule(id)
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

var placedFields = withPlace(ruleFields)
