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
	p.condition(e.tree, 0)
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

// condition prints c among terms that bind as tightly as among says.
func (p *printer) condition(c *condition, among int) {
	if c.not {
		p.WriteString("not ")
	}
	switch {
	case c.join != "" && (c.not || c.binds() < among):
		p.WriteByte('(')
		p.terms(c)
		p.WriteByte(')')
	case c.join != "":
		p.terms(c)
	case c.truth != "":
		p.WriteString(c.truth)
	default:
		p.comparison(c.comparison)
	}
}

func (p *printer) terms(c *condition) {
	separated(p, c.terms, " "+c.join+" ", func(t *condition) { p.condition(t, c.binds()) })
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
	p.condition(a.condition, 0)
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
