package expr

import (
	"fmt"
	"strconv"
)

// Expression is a condition on requests. It is immutable and may be used from
// many goroutines at once.
type Expression struct {
	tree     *condition
	match    predicate
	buffered bool // match needs a scratch
	answers  bool // it asks about the response
	steps    int  // see Steps
}

// Compile turns a source into an expression, or returns an *Error. Lists are
// looked up now: an expression goes on with those that it was compiled with.
func Compile(source string, lists Lists) (*Expression, error) {
	return compileShort(&checker{source: source, lists: lists})
}

// CompileCounting is Compile for expressions that may ask about the response, too.
func CompileCounting(source string, lists Lists) (*Expression, error) {
	return compileShort(&checker{source: source, lists: lists, mayAnswer: true})
}

func compileShort(c *checker) (*Expression, error) {
	length := 0
	for i := range c.source {
		if length++; length > MaxLength {
			return nil, errorAt(c.source, i, "the expression is too long; %d characters are allowed: put values into a $list, or make it two rules", MaxLength)
		}
	}
	return c.compile()
}

// compile takes sources of any length.
func (c *checker) compile() (*Expression, error) {
	tree, err := parse(c.source)
	if err != nil {
		return nil, err
	}
	p, err := c.condition(tree)
	if err != nil {
		return nil, err
	}
	return &Expression{tree: tree, match: p, buffered: c.buffered, answers: c.answers, steps: c.cost.steps()}, nil
}

// Answers reports whether e asks about the response, so that it is worth matching only
// once that has come.
func (e *Expression) Answers() bool { return e.answers }

// Steps returns how many steps e takes at most for each byte that the head of a request may have.
func (e *Expression) Steps() int { return e.steps }

// Match reports whether e is true of r. It does not allocate, and r is only
// read.
func (e *Expression) Match(r *Request) bool {
	if !e.buffered {
		return e.match(r, nil)
	}
	s := scratches.Get().(*scratch)
	yes := e.match(r, s)
	s.release()
	return yes
}

// checker turns a tree into predicates, and refuses what has no meaning.
type checker struct {
	source   string
	lists    Lists
	loop     *loop // the any or all that is being checked
	buffered bool  // something needs a scratch
	cost     cost  // of one match

	mayAnswer bool // fields of the response are allowed
	answers   bool // there is one
}

// loop is what any or all goes through.
type loop struct {
	function string
	label    string // of the array, "" until the first [*] is found
	elements elements
	turns    int  // as many elements as there may be
	apart    cost // of each turn, for what is not the element
}

func (c *checker) errorf(at int, format string, args ...any) error {
	return errorAt(c.source, at, format, args...)
}

// joins say what terms come to that a word joins.
var joins = map[string]func(terms []predicate) predicate{
	"or": func(terms []predicate) predicate {
		return func(r *Request, s *scratch) bool {
			for _, holds := range terms {
				if holds(r, s) {
					return true
				}
			}
			return false
		}
	},
	"xor": func(terms []predicate) predicate {
		return func(r *Request, s *scratch) bool {
			odd := false
			for _, holds := range terms {
				odd = odd != holds(r, s)
			}
			return odd
		}
	},
	"and": func(terms []predicate) predicate {
		return func(r *Request, s *scratch) bool {
			for _, holds := range terms {
				if !holds(r, s) {
					return false
				}
			}
			return true
		}
	},
}

func (c *checker) condition(x *condition) (holds predicate, err error) {
	switch {
	case x.join != "":
		terms := make([]predicate, len(x.terms))
		for i, t := range x.terms {
			if terms[i], err = c.condition(t); err != nil {
				return nil, err
			}
		}
		holds = joins[x.join](terms)
	case x.truth != "":
		always := x.truth == "true"
		holds = func(*Request, *scratch) bool { return always }
	default:
		if holds, err = c.comparison(x.comparison); err != nil {
			return nil, err
		}
	}
	if x.not {
		return negated(holds), nil
	}
	return holds, nil
}

func negated(holds predicate) predicate {
	return func(r *Request, s *scratch) bool { return !holds(r, s) }
}

// through goes through the elements of an array, of which every has to be as holds says, or any.
// Of no elements neither is true.
func through(all elements, holds predicate, every bool) predicate {
	return func(r *Request, s *scratch) bool {
		for at := (cursor{}); ; {
			v, next, ok := all(r, at)
			if !ok {
				return every && at != cursor{}
			}
			if s.element = v; holds(r, s) != every {
				return !every
			}
			at = next
		}
	}
}

// operand checks a field or a function and what is taken out of it.
func (c *checker) operand(o *operand) (*typed, error) {
	t, err := c.base(o)
	for i, x := range o.Index {
		if err != nil {
			return nil, err
		}
		if err = c.index(t, x); err == nil {
			t.label = formatOperand(&operand{Name: o.Name, Call: o.Call, Index: o.Index[:i+1]})
		}
	}
	if err == nil && o.Call == nil && t.kind == text && !t.ready {
		err = c.looksFor(t)
	}
	return t, err
}

func (c *checker) base(o *operand) (*typed, error) {
	at := o.Pos.Offset
	if o.Call != nil {
		return c.call(o)
	}
	field, known := fields[o.Name]
	if answer := responseFields[o.Name]; answer != nil {
		if !c.mayAnswer {
			return nil, c.errorf(at, "%s is of the response, which has not come yet; only the counting expression of a rate limit may ask about it", o.Name)
		}
		c.answers = true
		field, known = answer, true
	}
	switch {
	case known:
		t := *field
		t.at, t.label, t.length = at, o.Name, length{apart: headBytes}
		c.buffered = c.buffered || t.buffered
		return &t, nil
	case functions[o.Name] != nil:
		return nil, c.errorf(at, "%s is a function, and there is no field of this name: %s", o.Name, functions[o.Name].usage)
	}
	names := keys(fields)
	if c.mayAnswer {
		names = append(names, keys(responseFields)...)
	}
	return nil, unknown(c.source, at, "field", o.Name, names)
}

// index takes something out of t.
func (c *checker) index(t *typed, x *index) error {
	at := x.Pos.Offset
	switch {
	case t.shape == table && x.Text != nil:
		name, err := c.unquote(x.Text)
		if err != nil {
			return err
		}
		if t.fold {
			name = new(scratch).fold(name, lowerByte)
			x.Text = &quoted{Escaped: quote(name)}
		}
		t.shape, t.elements = array, t.named(name)
		return nil
	case t.shape == table:
		return c.errorf(at, `%s holds values by name: %[1]s["name"]`, t.label)
	case x.Text != nil:
		return c.errorf(at, "%s is %v, which holds nothing by name", t.label, t)
	case t.shape == array && x.Each:
		return c.each(t, at)
	case t.shape == array:
		i, err := strconv.Atoi(x.Place)
		if err != nil || i < 0 {
			return c.errorf(at, "want the place of an element in brackets, from 0 on, or *")
		}
		all := t.elements
		t.shape, t.text = single, func(r *Request, _ *scratch) (string, bool) { return all.element(r, i) }
		c.lowerText(t)
		return nil
	case t.shape == mapped && x.Each:
		t.shape = each
		return nil
	case t.shape == mapped:
		return c.errorf(at, "only [*] may stand behind %s; [%s] goes where its [*] is", t.label, x.Place)
	}
	return c.errorf(at, "%s is %v; there is nothing to take out of it", t.label, t)
}

// each makes t the element at which the loop is.
func (c *checker) each(t *typed, at int) error {
	switch {
	case c.loop == nil:
		return c.errorf(at, "[*] stands for each element and belongs into any or all: any(%s[*] …)", t.label)
	case c.loop.elements == nil:
		c.loop.label, c.loop.elements, c.loop.turns = t.label, t.elements, t.most()
	case c.loop.label != t.label:
		return c.errorf(at, "%s goes through %s here; there can be no second array", c.loop.function, c.loop.label)
	}
	c.buffered = true
	t.length = length{elements: headBytes, apart: 1}
	t.shape, t.text = each, func(_ *Request, s *scratch) (string, bool) { return s.element, true }
	c.lowerText(t)
	return nil
}

// lowerText makes the text of an element lower case where those of its array are.
func (c *checker) lowerText(t *typed) {
	if get := t.text; t.lower {
		c.buffered, t.buffered = true, true
		t.text = func(r *Request, s *scratch) (string, bool) {
			v, ok := get(r, s)
			return s.fold(v, lowerByte), ok
		}
	}
}

// String says what t is, for messages.
func (t *typed) String() string {
	switch t.shape {
	case array:
		return "an array of strings"
	case table:
		return "a table of strings"
	case mapped:
		return fmt.Sprintf("%v for each element", t.kind)
	}
	return t.kind.String()
}

// one refuses what stands for more than one value.
func (c *checker) one(t *typed) error {
	switch t.shape {
	case table:
		return c.errorf(t.at, `%s holds values by name; write %[1]s["name"][0] for the first of a name`, t.label)
	case array:
		return c.errorf(t.at, "%s is an array; write %[1]s[0] for its first element, or any(%[1]s[*] …)", t.label)
	case mapped:
		return c.errorf(t.at, "%s is %v; write %[1]s[*] to take them one by one", t.label, t)
	}
	return nil
}
