package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

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
		made := decode(r, c.body, placedFields, &placed{Rule: *newRule()}, nil)
		made.ID, made.Version, made.Created = id, 1, c.now()
		i := made.put(r, &is.Rules, len(is.Rules))
		return part{"rules", i}, nil
	}))
}

func changeRule(ctx context.Context, c *Call) (Answer, error) {
	return c.writtenRules(c.edit(ctx, change, func(r *reader, is *catalog.Room) (part, error) {
		i, err := c.rule(is, c.params["rule"])
		if err != nil {
			return part{}, err
		}
		was := placed{Rule: is.Rules[i]}
		made := decode(r, c.body, placedFields, &placed{Rule: *newRule()}, &was)
		if made.Rule.Rule != was.Rule.Rule {
			made.Version++
		}
		is.Rules = slices.Delete(is.Rules, i, i+1)
		i = made.put(r, &is.Rules, i)
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

// placed is a rule with where it is to be among the others. The zero place is where it is.
type placed struct {
	catalog.Rule
	index         int    // from 1 on; 0: not by that
	before, after *value // an id, or "" for the first and the last
}

var placedFields = append(ofRule(ruleFields), field[placed]{
	name: "position", allowed: `an object with one of index (from 1 on), before (an id; "" for the first), after (an id; "" for the last)`,
	meaning: "Where the rule is to be among the others. Default: where it is; a new one comes last.",
	schema: always(Schema{"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false, "properties": map[string]Schema{
		"index": {"type": "integer", "minimum": 1}, "before": {"type": "string"}, "after": {"type": "string"},
	}}),
	read: readPosition,
})

// ofRule makes fields of a rule those of a placed one.
func ofRule(fields []ruleField) (all []field[placed]) {
	for _, f := range fields {
		p := field[placed]{name: f.name, meaning: f.meaning, allowed: f.allowed, schema: f.schema, required: f.required, nullable: f.nullable}
		p.show = func(t *placed, now time.Time) any { return f.show(&t.Rule, now) }
		if f.read != nil {
			p.read = func(r *reader, v value, into, _ *placed) { f.read(r, v, &into.Rule, nil) }
			p.copy = func(from, into *placed) { f.copy(&from.Rule, &into.Rule) }
		}
		all = append(all, p)
	}
	return all
}

func readPosition(r *reader, v value, into, _ *placed) {
	const name, allowed = "position", `an object with one of index (from 1 on), before (an id; "" for the first), after (an id; "" for the last)`
	if v.kind != kindObject || len(v.members) != 1 {
		r.fail(CodeType, name, v, allowed)
		return
	}
	m := v.members[0]
	n, err := strconv.Atoi(m.value.text)
	switch {
	case m.name == "index" && m.value.kind == kindNumber && err == nil && n >= 1:
		into.index = n
	case m.name == "before" && m.value.kind == kindText:
		into.before = &m.value
	case m.name == "after" && m.value.kind == kindText:
		into.after = &m.value
	default:
		r.fail(CodeRefused, join(name, m.name), m.value, allowed)
	}
}

// put puts the rule among others that do not have it, at i if it says nothing else, and
// returns where it is.
func (p *placed) put(r *reader, rules *[]catalog.Rule, i int) int {
	find := func(name string, id value, end, past int) int {
		if id.text == "" {
			return end
		}
		at := slices.IndexFunc(*rules, func(rule catalog.Rule) bool { return rule.ID.String() == id.text })
		if at < 0 {
			r.fail(CodeRefused, "position."+name, id, "the id of another rule of the room")
			return i
		}
		return at + past
	}
	switch {
	case p.index > len(*rules)+1:
		r.fail(CodeRefused, "position.index", value{kind: kindNumber, text: strconv.Itoa(p.index)}, fmt.Sprintf("a whole number from 1 to %d", len(*rules)+1))
	case p.index > 0:
		i = p.index - 1
	case p.before != nil:
		i = find("before", *p.before, 0, 0)
	case p.after != nil:
		i = find("after", *p.after, len(*rules), 1)
	}
	*rules = slices.Insert(*rules, i, p.Rule)
	return i
}
