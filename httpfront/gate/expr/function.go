package expr

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// function is what is known about a function before it is called.
type function struct {
	usage    string
	params   []kind
	optional int  // how many of the last params may be left out
	more     bool // the last param may be given again and again
	arrays   bool // takes arrays as well
	fixed    bool // may do without anything of the request
	repeats  int  // how often it may go over the text that it makes; 0 is once

	// call sets what t does with checked arguments. The problem is about the last
	// one, and "" where there is none.
	call func(t *typed, args []*typed) (problem string)
}

// functions of expressions. any and all, which take a whole expression, are
// checked apart.
var functions = map[string]*function{
	"any": {usage: "any(array[*] …)"},
	"all": {usage: "all(array[*] …)"},
	"lower": {
		usage: "lower(text)", params: []kind{text},
		call: foldWith(lowerByte),
	},
	"upper": {
		usage: "upper(text)", params: []kind{text},
		call: foldWith(upperByte),
	},
	"url_decode": {
		usage: `url_decode(text) or url_decode(text, "ru")`, params: []kind{text, text}, optional: 1,
		repeats: maxDecodings, call: callDecode,
	},
	"concat": {
		usage: "concat(text, text, …)", params: []kind{text}, more: true, fixed: true,
		call: callConcat,
	},
	"len": {
		usage: "len(text) or len(array)", params: []kind{text}, arrays: true,
		call: callLen,
	},
	"starts_with": {
		usage: `starts_with(text, "beginning")`, params: []kind{text, text},
		call: compareWith(strings.HasPrefix),
	},
	"ends_with": {
		usage: `ends_with(text, "end")`, params: []kind{text, text},
		call: compareWith(strings.HasSuffix),
	},
}

func foldWith(to func(byte) byte) func(*typed, []*typed) string {
	return func(t *typed, args []*typed) string {
		t.kind, t.buffered, t.text = text, true, folded(args[0].text, to)
		return ""
	}
}

func folded(get textOf, to func(byte) byte) textOf {
	return func(r *Request, s *scratch) (string, bool) {
		v, ok := get(r, s)
		return s.fold(v, to), ok
	}
}

func callDecode(t *typed, args []*typed) string {
	unicode, recursive := false, false
	if len(args) == 2 {
		if !args[1].constant {
			return `the options have to be a string: "r" decodes again and again, "u" decodes %u and four digits too`
		}
		options, _ := args[1].text(nil, nil)
		if strings.Trim(options, "ru") != "" {
			return "the options are r, to decode again and again, and u, to decode %u and four digits too"
		}
		unicode, recursive = strings.Contains(options, "u"), strings.Contains(options, "r")
	}
	get := args[0].text
	t.kind, t.buffered = text, true
	t.text = func(r *Request, s *scratch) (string, bool) {
		v, ok := get(r, s)
		return s.decode(v, unicode, recursive), ok
	}
	return ""
}

// callConcat takes what is missing for "".
func callConcat(t *typed, args []*typed) string {
	t.kind, t.buffered = text, true
	t.text = func(r *Request, s *scratch) (string, bool) {
		// Arguments may make text as well, behind which the parts would not be in a
		// row; so each is moved down to the end of the row.
		begin := len(s.buf)
		for _, arg := range args {
			end := len(s.buf)
			v, _ := arg.text(r, s)
			s.buf = append(s.buf[:end], v...)
		}
		return s.since(begin), true
	}
	return ""
}

func callLen(t *typed, args []*typed) string {
	t.kind = number
	if all := args[0].elements; args[0].shape == array {
		t.number = func(r *Request, _ *scratch) (int64, bool) {
			n := all.count(r)
			return n, n > 0
		}
		return ""
	}
	get := args[0].text
	t.number = func(r *Request, s *scratch) (int64, bool) {
		v, ok := get(r, s)
		return int64(len(v)), ok
	}
	return ""
}

func compareWith(holds func(s, part string) bool) func(*typed, []*typed) string {
	return func(t *typed, args []*typed) string {
		get, part := args[0].text, args[1].text
		t.kind = truth
		t.truth = settle(func(r *Request, s *scratch) bool {
			v, ok := get(r, s)
			if !ok {
				return false
			}
			p, ok := part(r, s)
			return ok && holds(v, p)
		}, t.buffered)
		return ""
	}
}

// call checks the call of a function.
func (c *checker) call(o *operand) (*typed, error) {
	at := o.Pos.Offset
	f := functions[o.Name]
	if f == nil {
		return nil, unknown(c.source, at, "function", o.Name, keys(functions))
	}
	if f.call == nil {
		return c.callLoop(o)
	}
	given := len(o.Call.Arguments)
	if given < len(f.params)-f.optional || given > len(f.params) && !f.more {
		return nil, c.errorf(at, "%s with %s; want %s", o.Name, counted(given, "argument"), f.usage)
	}
	t := &typed{at: at, label: formatOperand(&operand{Name: o.Name, Call: o.Call})}
	args := make([]*typed, given)
	for i, a := range o.Call.Arguments {
		arg, err := c.argument(o.Name, a, f.params[min(i, len(f.params)-1)], f.arrays)
		if err != nil {
			return nil, err
		}
		if i == 0 && arg.constant && !f.fixed {
			return nil, c.errorf(arg.at, "the first argument of %s has to come from the request; %s is always the same", o.Name, arg.label)
		}
		if arg.shape == each {
			t.shape = mapped
		}
		t.buffered = t.buffered || arg.buffered
		t.length = t.length.plus(arg.length)
		args[i] = arg
	}
	if problem := f.call(t, args); problem != "" {
		return nil, c.errorf(args[given-1].at, "%s", problem)
	}
	c.buffered = c.buffered || t.buffered
	if t.kind == text {
		return t, c.spend(at, f.passes(), t.length)
	}
	return t, c.spendInLoop(at, t.length)
}

// callLoop checks any and all.
func (c *checker) callLoop(o *operand) (*typed, error) {
	at, args := o.Pos.Offset, o.Call.Arguments
	switch {
	case c.loop != nil:
		return nil, c.errorf(at, "%s stands within %s; neither goes into the other", o.Name, c.loop.function)
	case len(args) != 1 || args[0].Expression == nil:
		return nil, c.errorf(at, "%s takes one expression: %s", o.Name, functions[o.Name].usage)
	}
	c.loop = &loop{function: o.Name}
	holds, err := c.condition(args[0].condition)
	l := c.loop
	c.loop = nil
	switch {
	case err != nil:
		return nil, err
	case l.elements == nil:
		return nil, c.errorf(at, "%s goes through the elements of an array; there is no [*] in it: %s", o.Name, functions[o.Name].usage)
	}
	if err := c.spend(at, l.turns, length{apart: int(l.apart)}); err != nil {
		return nil, err
	}
	t := &typed{at: at, label: formatOperand(&operand{Name: o.Name, Call: o.Call}), kind: truth}
	t.truth = through(l.elements, holds, o.Name == "all")
	return t, nil
}

// argument checks an argument of any other function.
func (c *checker) argument(function string, a *argument, want kind, arrays bool) (*typed, error) {
	at := a.Pos.Offset
	if a.Literal != nil {
		v, err := c.constant(a.Literal)
		if err != nil {
			return nil, err
		}
		t := &typed{at: at, label: formatLiteral(a.Literal), kind: v.kind, constant: true, length: length{apart: len(v.text)}}
		t.text = func(*Request, *scratch) (string, bool) { return v.text, true }
		return t, c.argumentKind(function, t, want)
	}
	o := a.condition.operand()
	if o == nil {
		return nil, c.errorf(at, "an argument of %s is one field, function or string, not an expression", function)
	}
	t, err := c.operand(o)
	if err != nil {
		return nil, err
	}
	if !arrays || t.shape != array {
		if err := c.one(t); err != nil {
			return nil, err
		}
	}
	return t, c.argumentKind(function, t, want)
}

func (c *checker) argumentKind(function string, t *typed, want kind) error {
	if t.kind != want {
		return c.errorf(t.at, "an argument of %s is %v; %s is %v", function, want, t.label, t)
	}
	return nil
}

func keys[V any](m map[string]V) []string { return slices.Collect(maps.Keys(m)) }

// counted says how many things there are.
func counted(n int, thing string) string {
	switch n {
	case 0:
		return "no " + thing
	case 1:
		return "one " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
