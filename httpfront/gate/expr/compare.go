package expr

import (
	"cmp"
	"strings"

	"go4.org/netipx"
)

// MaxSetSize is how many elements may stand in braces.
const MaxSetSize = 1000

// operators gives each operator the name that it is told by.
var operators = map[string]string{
	"eq": "eq", "==": "eq",
	"ne": "ne", "!=": "ne",
	"lt": "lt", "<": "lt",
	"le": "le", "<=": "le",
	"gt": "gt", ">": "gt",
	"ge": "ge", ">=": "ge",
	"contains": "contains",
	"matches":  "matches", "~": "matches",
	"in":       "in",
	"wildcard": "wildcard",
}

// name returns the name of o. The two words of the strict wildcard are read in a
// row.
func (o *operator) name() string {
	if o.Word == "strictwildcard" {
		return "strict wildcard"
	}
	return operators[o.Word]
}

// comparers say which operators a kind of value has.
var comparers = [...]string{
	truth:   "eq and ne",
	number:  "eq, ne, lt, le, gt, ge and in",
	text:    "eq, ne, lt, le, gt, ge, contains, matches, wildcard, strict wildcard and in",
	address: "eq, ne and in",
}

// order says for which results of a comparison of two values an operator holds.
type order struct{ less, equal, greater bool }

var orders = map[string]order{
	"eq": {equal: true},
	"ne": {less: true, greater: true},
	"lt": {less: true},
	"le": {less: true, equal: true},
	"gt": {greater: true},
	"ge": {greater: true, equal: true},
}

func (o order) holds(result int) bool {
	switch {
	case result < 0:
		return o.less
	case result > 0:
		return o.greater
	}
	return o.equal
}

func (c *checker) comparison(x *comparison) (predicate, error) {
	left, err := c.operand(x.Left)
	if err != nil {
		return nil, err
	}
	if x.Operator == nil {
		return c.alone(left)
	}
	if err := c.one(left); err != nil {
		return nil, err
	}
	b := &binary{checker: c, left: left, op: x.Operator.name(), at: x.Operator.Pos.Offset, right: x.Right}
	switch left.kind {
	case truth:
		return b.truth()
	case number:
		return b.number()
	case address:
		return b.address()
	}
	return b.text()
}

// alone checks an operand that is not compared with anything.
func (c *checker) alone(t *typed) (predicate, error) {
	if t.kind == truth {
		return t.truth, nil
	}
	if err := c.one(t); err != nil {
		return nil, err
	}
	return nil, c.errorf(t.at, "%s is %v, which is neither true nor false; compare it: %[1]s eq …", t.label, t)
}

// binary is a comparison that is being checked.
type binary struct {
	*checker
	left  *typed
	op    string
	at    int // of the operator
	right *value
}

// wrongOperator says that the left side does not have the operator.
func (b *binary) wrongOperator() error {
	hint := ""
	if b.left.kind == address && orders[b.op] != (order{}) {
		hint = "; a range is in {10.0.0.1..10.0.0.9}"
	}
	return b.errorf(b.at, "%s is %v and has no %s; it has %s%s", b.left.label, b.left, b.op, comparers[b.left.kind], hint)
}

// literal returns the right side, which has to be one value of the left side's
// kind.
func (b *binary) literal() (constant, error) {
	at := b.right.Pos.Offset
	switch {
	case b.right.Literal != nil:
		return b.element(b.right.Literal)
	case b.right.Truth != "":
		return constant{}, b.errorf(at, "%s is %v, but %s is %v", b.left.label, b.left, b.right.Truth, truth)
	}
	return constant{}, b.errorf(at, "%s takes one value; a set or a list goes with in", b.op)
}

// element returns a value of the right side or of a set there.
func (b *binary) element(l *literal) (constant, error) {
	v, err := b.constant(l)
	if err != nil || v.kind == b.left.kind {
		return v, err
	}
	hint := ""
	switch {
	case v.kind == text && b.left.kind != text:
		hint = "; only strings stand in quotes"
	case b.left.kind == text:
		hint = "; strings stand in quotes: " + quote(formatLiteral(l))
	}
	return v, b.errorf(l.Pos.Offset, "%s is %v, but %s is %v%s", b.left.label, b.left, formatLiteral(l), v.kind, hint)
}

// set calls each with the elements of the right side, which has to be a set: with both ends of
// a range, and twice with what is none.
func (b *binary) set(each func(it *item, from, to constant) error) error {
	at := b.right.Pos.Offset
	if b.right.Set == nil {
		example := "{…}"
		if b.right.Literal != nil {
			example = "{" + formatLiteral(b.right.Literal) + "}"
		}
		return b.errorf(at, "in takes a set in braces or a $list: in %s", example)
	}
	switch n := len(b.right.Set.Items); {
	case n == 0:
		return b.errorf(at, "this set is empty; nothing ever is in it")
	case n > MaxSetSize:
		return b.errorf(at, "a set of %d elements; %d are allowed, and more in a $list", n, MaxSetSize)
	}
	for _, it := range b.right.Set.Items {
		from, err := b.element(it.From)
		to := from
		if err == nil && it.To != nil {
			to, err = b.element(it.To)
		}
		if err == nil {
			err = each(it, from, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// list returns the list that the right side names, or nil if it names none.
func (b *binary) list() (*List, error) {
	if b.right.List == "" {
		return nil, nil
	}
	at := b.right.Pos.Offset
	list := b.lists[strings.TrimPrefix(b.right.List, "$")]
	if list == nil {
		return nil, unknown(b.source, at, "list", b.right.List, b.lists.names())
	}
	if list.kind != b.left.kind {
		held := map[kind]string{text: "strings", address: "IP addresses"}[list.kind]
		return nil, b.errorf(at, "%s is %v, but %s is a list of %s", b.left.label, b.left, b.right.List, held)
	}
	return list, nil
}

func (b *binary) truth() (predicate, error) {
	if b.op != "eq" && b.op != "ne" {
		return nil, b.wrongOperator()
	}
	if b.right.Truth == "" {
		return nil, b.errorf(b.right.Pos.Offset, "%s is true or false, and compared with true or false", b.left.label)
	}
	if (b.right.Truth == "true") == (b.op == "eq") {
		return b.left.truth, nil
	}
	return negated(b.left.truth), nil
}

func (b *binary) number() (predicate, error) {
	get, buffered := b.left.number, b.left.buffered
	if b.op == "in" {
		spans, err := b.spans()
		if err != nil {
			return nil, err
		}
		return settle(func(r *Request, s *scratch) bool {
			v, ok := get(r, s)
			return ok && spans.hold(v)
		}, buffered), nil
	}
	o, known := orders[b.op]
	if !known {
		return nil, b.wrongOperator()
	}
	want, err := b.literal()
	if err != nil {
		return nil, err
	}
	return settle(func(r *Request, s *scratch) bool {
		v, ok := get(r, s)
		return ok && o.holds(cmp.Compare(v, want.number))
	}, buffered), nil
}

// spans are ranges of numbers, ends included. They are few, so they are tried
// one after the other.
type spans []span

type span struct{ from, to int64 }

func (s spans) hold(v int64) bool {
	for _, span := range s {
		if span.from <= v && v <= span.to {
			return true
		}
	}
	return false
}

func (b *binary) spans() (all spans, err error) {
	if _, err := b.list(); err != nil {
		return nil, err
	}
	err = b.set(func(it *item, from, to constant) error {
		if to.number < from.number {
			return b.errorf(it.From.Pos.Offset, "this range is empty: it ends before it begins")
		}
		all = append(all, span{from.number, to.number})
		return nil
	})
	return all, err
}

func (b *binary) address() (predicate, error) {
	get := b.left.address
	switch b.op {
	case "in":
		set, err := b.addresses()
		if err != nil {
			return nil, err
		}
		return func(r *Request, s *scratch) bool {
			a, ok := get(r, s)
			return ok && set.Contains(a)
		}, nil
	case "eq", "ne":
	default:
		return nil, b.wrongOperator()
	}
	v, err := b.literal()
	if err != nil {
		return nil, err
	}
	want, equal := v.address.From(), b.op == "eq"
	if want != v.address.To() {
		return nil, b.errorf(b.right.Pos.Offset, "%s compares with one address; for a network write in {%s}", b.op, formatLiteral(b.right.Literal))
	}
	return func(r *Request, s *scratch) bool {
		a, ok := get(r, s)
		return ok && (a == want) == equal
	}, nil
}

func (b *binary) addresses() (*netipx.IPSet, error) {
	list, err := b.list()
	if err != nil {
		return nil, err
	}
	if list != nil {
		return list.addresses, nil
	}
	var all netipx.IPSetBuilder
	err = b.set(func(it *item, from, to constant) error {
		r, problem := from.address, ""
		if it.To != nil {
			r, problem = spanAddresses(r, to.address)
		}
		if problem != "" {
			return b.errorf(it.From.Pos.Offset, "%s", problem)
		}
		all.AddRange(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all.IPSet()
}

func (b *binary) text() (predicate, error) {
	holds, err := b.textTest()
	if err != nil {
		return nil, err
	}
	get := b.left.text
	return settle(func(r *Request, s *scratch) bool {
		v, ok := get(r, s)
		return ok && holds(v)
	}, b.left.buffered), nil
}

// textTest returns what is asked about the text of the left side.
func (b *binary) textTest() (func(string) bool, error) {
	switch b.op {
	case "in":
		return b.strings()
	case "matches":
		if b.right.Literal == nil || b.right.Literal.Text == nil {
			_, err := b.literal()
			return nil, err
		}
		re, err := b.pattern(b.right.Literal.Text, b.left.length)
		if err != nil {
			return nil, err
		}
		return re.MatchString, nil
	}
	v, err := b.literal()
	if err != nil {
		return nil, err
	}
	want := v.text
	if b.op == "contains" || b.op == "wildcard" || b.op == "strict wildcard" {
		if err := b.spendInLoop(b.at, b.left.length); err != nil {
			return nil, err
		}
	}
	switch b.op {
	case "eq":
		return func(s string) bool { return s == want }, nil
	case "ne":
		return func(s string) bool { return s != want }, nil
	case "contains":
		return func(s string) bool { return strings.Contains(s, want) }, nil
	case "wildcard", "strict wildcard":
		return b.wildcard(want)
	}
	o := orders[b.op]
	return func(s string) bool { return o.holds(strings.Compare(s, want)) }, nil
}

// wildcard compares in lower case where it is not strict.
func (b *binary) wildcard(pattern string) (func(string) bool, error) {
	strict := b.op == "strict wildcard"
	if !strict {
		pattern = new(scratch).fold(pattern, lowerByte)
		b.left.text = folded(b.left.text, lowerByte)
		b.left.buffered, b.buffered = true, true
	}
	w, problem := parseWildcard(pattern)
	if problem != "" {
		return nil, b.errorf(b.right.Pos.Offset, "%s", problem)
	}
	return w.match, nil
}

func (b *binary) strings() (func(string) bool, error) {
	list, err := b.list()
	if err != nil {
		return nil, err
	}
	if list != nil {
		return hasKey(list.strings), nil
	}
	all := map[string]struct{}{}
	err = b.set(func(it *item, v, _ constant) error {
		if it.To != nil {
			return b.errorf(it.From.Pos.Offset, "there are no ranges of strings")
		}
		all[v.text] = struct{}{}
		return nil
	})
	return hasKey(all), err
}

func hasKey(m map[string]struct{}) func(string) bool {
	return func(s string) bool {
		_, ok := m[s]
		return ok
	}
}
