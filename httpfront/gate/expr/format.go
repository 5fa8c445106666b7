package expr

import (
	"net/netip"
	"strconv"
	"strings"
)

// String returns the expression in its plainest form: operators as words, one
// space between all, no parentheses that change nothing. Compiling it gives the
// same expression; it may be longer than a source may be.
func (e *Expression) String() string {
	var p printer
	p.disjunction(e.tree)
	return p.String()
}

type printer struct{ strings.Builder }

// separated prints items with a separator between them.
func separated[T any](p *printer, items []T, separator string, print func(T)) {
	for i, item := range items {
		if i > 0 {
			p.WriteString(separator)
		}
		print(item)
	}
}

func (p *printer) disjunction(d *disjunction) { separated(p, d.Terms, " or ", p.exclusion) }

func (p *printer) exclusion(x *exclusion) { separated(p, x.Terms, " xor ", p.conjunction) }

func (p *printer) conjunction(j *conjunction) { separated(p, j.Terms, " and ", p.negation) }

func (p *printer) negation(n *negation) {
	p.WriteString(strings.Repeat("not ", len(n.Nots)))
	switch {
	case n.Group != nil:
		p.WriteByte('(')
		p.disjunction(n.Group)
		p.WriteByte(')')
	case n.Truth != "":
		p.WriteString(n.Truth)
	default:
		p.comparison(n.Comparison)
	}
}

func (p *printer) comparison(x *comparison) {
	p.operand(x.Left)
	if x.Operator == nil {
		return
	}
	op := x.Operator.name()
	p.WriteString(" " + op + " ")
	switch right := x.Right; {
	case right.List != "":
		p.WriteString(right.List)
	case right.Truth != "":
		p.WriteString(right.Truth)
	case right.Set != nil:
		p.WriteByte('{')
		separated(p, right.Set.Items, " ", p.item)
		p.WriteByte('}')
	case op == "matches":
		p.WriteString(quoteRaw(patternSource(right.Literal.Text)))
	default:
		p.WriteString(formatLiteral(right.Literal))
	}
}

func (p *printer) item(it *item) {
	p.WriteString(formatLiteral(it.From))
	if it.To != nil {
		p.WriteString(".." + formatLiteral(it.To))
	}
}

func (p *printer) operand(o *operand) {
	p.WriteString(o.Name)
	if o.Call != nil {
		p.WriteByte('(')
		separated(p, o.Call.Arguments, ", ", p.argument)
		p.WriteByte(')')
	}
	for _, x := range o.Index {
		switch {
		case x.Each:
			p.WriteString("[*]")
		case x.Text != nil:
			p.WriteString("[" + formatQuoted(x.Text) + "]")
		default:
			p.WriteString("[" + x.Place + "]")
		}
	}
}

func (p *printer) argument(a *argument) {
	if a.Literal != nil {
		p.WriteString(formatLiteral(a.Literal))
		return
	}
	p.disjunction(a.Expression)
}

func formatOperand(o *operand) string {
	var p printer
	p.operand(o)
	return p.String()
}

// formatLiteral prints what may not have been checked, so that messages can show
// it: what cannot be read is printed as it stands.
func formatLiteral(l *literal) string {
	switch {
	case l.Text != nil:
		return formatQuoted(l.Text)
	case l.Number != "":
		if n, err := strconv.ParseInt(l.Number, 10, 64); err == nil {
			return strconv.FormatInt(n, 10)
		}
		return l.Number
	}
	if a, err := netip.ParseAddr(l.Address); err == nil {
		return a.Unmap().String()
	}
	if p, err := netip.ParsePrefix(l.Address); err == nil {
		return p.String()
	}
	return l.Address
}

func formatQuoted(q *quoted) string {
	if q.Raw != nil {
		return quote(q.Raw.Text)
	}
	if s, wrong := unescape(q.Escaped[1 : len(q.Escaped)-1]); wrong < 0 {
		return quote(s)
	}
	return q.Escaped
}
