package expr

import (
	"fmt"
	"strings"
)

// Value is what requests are told apart by: a field with one value, or what a function
// makes of one. It is immutable and may be used from many goroutines at once.
type Value struct {
	of       *typed
	buffered bool // needs a scratch
	steps    int  // as those of an expression
}

// Steps is what Expression.Steps is.
func (v *Value) Steps() int { return v.steps }

// CompileValue turns a source such as http.request.headers["x-api-key"] into a value, or
// returns an *Error. Of what comes several times, such as a cookie of a name, the first is
// meant if the source does not say which.
func CompileValue(source string) (*Value, error) {
	if len(source) > MaxLength {
		return nil, errorAt(source, 0, "this is too long; %d bytes are allowed", MaxLength)
	}
	tree, err := parse(source)
	if err != nil {
		return nil, err
	}
	x := tree.operand()
	if x == nil {
		return nil, errorAt(source, 0, "this is a condition; want a field with one value, such as ip.src")
	}
	c := &checker{source: source}
	t, err := c.operand(x)
	switch {
	case err != nil:
		return nil, err
	case t.shape == array && len(x.Index) > 0: // all of a name
		all := t.elements
		t.shape, t.text = single, func(r *Request, _ *scratch) (string, bool) { return all.element(r, 0) }
	}
	if err := c.one(t); err != nil {
		return nil, err
	}
	switch {
	case t.shape != single:
		return nil, c.errorf(t.at, "%s is one of many; want a field with one value", t.label)
	case t.kind != text && t.kind != address:
		return nil, c.errorf(t.at, "%s is %v; want a string or an IP address", t.label, t)
	}
	return &Value{of: t, buffered: c.buffered, steps: c.cost.steps()}, nil
}

// IsAddress reports whether the value is an address, of which Append writes the 16 bytes
// that it has in IPv6.
func (v *Value) IsAddress() bool { return v.of.kind == address }

// Append appends the value that r has, and reports whether it has one. It does not
// allocate but for dst, and r is only read.
func (v *Value) Append(dst []byte, r *Request) (_ []byte, ok bool) {
	var s *scratch
	if v.buffered {
		s = scratches.Get().(*scratch)
		defer s.release()
	}
	if v.of.kind == address {
		a, ok := v.of.address(r, s)
		if !ok {
			return dst, false
		}
		b := a.As16()
		return append(dst, b[:]...), true
	}
	text, ok := v.of.text(r, s)
	if !ok {
		return dst, false
	}
	return append(dst, text...), true
}

// String returns the value as a source that means the same.
func (v *Value) String() string { return fmt.Sprint(strings.TrimSpace(v.of.label)) }
