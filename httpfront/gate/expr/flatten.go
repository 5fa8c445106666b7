package expr

// flatten takes out what changes nothing: parentheses around what binds as
// tightly without them, and not not. It goes from the inside out, and the tree
// afterwards is the one of the expression's plainest form.
func (d *disjunction) flatten() {
	var terms []*exclusion
	for _, x := range d.Terms {
		x.flatten()
		if g := x.group(); g != nil {
			terms = append(terms, g.Terms...)
			continue
		}
		terms = append(terms, x)
	}
	d.Terms = terms
}

func (x *exclusion) flatten() {
	var terms []*conjunction
	for _, j := range x.Terms {
		j.flatten()
		if g := j.group(); g != nil && len(g.Terms) == 1 {
			terms = append(terms, g.Terms[0].Terms...)
			continue
		}
		terms = append(terms, j)
	}
	x.Terms = terms
}

func (j *conjunction) flatten() {
	var terms []*negation
	for _, n := range j.Terms {
		n.flatten()
		if g := n.group(); g != nil && len(g.Terms) == 1 && len(g.Terms[0].Terms) == 1 {
			terms = append(terms, g.Terms[0].Terms[0].Terms...)
			continue
		}
		terms = append(terms, n)
	}
	j.Terms = terms
}

func (n *negation) flatten() {
	if n.Comparison != nil {
		n.Comparison.Left.flatten()
	}
	if n.Group != nil {
		n.Group.flatten()
		if inner := n.Group.lone(); inner != nil {
			nots := append(n.Nots, inner.Nots...)
			*n = *inner
			n.Nots = nots
		}
	}
	n.Nots = n.Nots[:len(n.Nots)%2]
}

func (o *operand) flatten() {
	if o.Call == nil {
		return
	}
	for _, a := range o.Call.Arguments {
		if a.Expression != nil {
			a.Expression.flatten()
		}
	}
}

// group returns the group that is all of x, or nil if there is more to x.
func (x *exclusion) group() *disjunction {
	if len(x.Terms) != 1 {
		return nil
	}
	return x.Terms[0].group()
}

func (j *conjunction) group() *disjunction {
	if len(j.Terms) != 1 {
		return nil
	}
	return j.Terms[0].group()
}

func (n *negation) group() *disjunction {
	if len(n.Nots) > 0 {
		return nil
	}
	return n.Group
}

// lone returns the only term of d, or nil if d has several.
func (d *disjunction) lone() *negation {
	if len(d.Terms) != 1 || len(d.Terms[0].Terms) != 1 || len(d.Terms[0].Terms[0].Terms) != 1 {
		return nil
	}
	return d.Terms[0].Terms[0].Terms[0]
}
