package expr

// condition is an expression without what changes nothing: parentheses around what binds as
// tightly without them, and not not. So it is what is left of all the ways to write it.
type condition struct {
	not   bool
	join  string       // the word between terms: "or", "xor" or "and"; "" for a single test
	terms []*condition // two or more with join, of which none has the same join without a not

	// A single test is one of these two.
	truth      string
	comparison *comparison
}

// binds says how tightly a condition holds together: of two, the one with the higher number is
// read first.
func (c *condition) binds() int {
	return map[string]int{"or": 0, "xor": 1, "and": 2, "": 3}[c.join]
}

// operand returns the operand that is all of a condition, or nil if there is more to it.
func (c *condition) operand() *operand {
	if c.not || c.comparison == nil || c.comparison.Operator != nil {
		return nil
	}
	return c.comparison.Left
}

func (d *disjunction) condition() *condition { return joined("or", d.Terms, (*exclusion).condition) }

func (x *exclusion) condition() *condition { return joined("xor", x.Terms, (*conjunction).condition) }

func (j *conjunction) condition() *condition { return joined("and", j.Terms, (*negation).condition) }

func (n *negation) condition() *condition {
	var c *condition
	if n.Group != nil {
		c = n.Group.condition()
	} else {
		c = &condition{truth: n.Truth, comparison: n.Comparison}
	}
	if n.Comparison != nil {
		n.Comparison.Left.simplify()
	}
	c.not = c.not != (len(n.Nots)%2 == 1)
	return c
}

// joined returns what terms come to that one word joins.
func joined[T any](word string, terms []T, of func(T) *condition) *condition {
	if len(terms) == 1 {
		return of(terms[0])
	}
	c := &condition{join: word}
	for _, t := range terms {
		if inner := of(t); inner.join == word && !inner.not {
			c.terms = append(c.terms, inner.terms...)
		} else {
			c.terms = append(c.terms, inner)
		}
	}
	return c
}

// simplify makes conditions of the arguments of a function.
func (o *operand) simplify() {
	if o.Call == nil {
		return
	}
	for _, a := range o.Call.Arguments {
		if a.Expression != nil {
			a.condition = a.Expression.condition()
		}
	}
}
