package room

import (
	"errors"
	"fmt"

	"github.com/ropeline/ropeline/node/settings"
)

// FieldError says that one setting cannot be used as it stands.
type FieldError struct {
	Field   string // the setting's name in a configuration file
	Value   string // what was given
	Allowed string // what would be accepted

	// Problem says what is wrong, instead of Value and Allowed, where a value is too
	// long for that or is right in most parts. It may have several lines.
	Problem string
}

// Error implements error.
func (e *FieldError) Error() string { return e.Field + ": " + e.Reason() }

// Reason returns the error without the name of the setting.
func (e *FieldError) Reason() string {
	if e.Problem != "" {
		return e.Problem
	}
	return fmt.Sprintf("%q is not allowed: want %s", e.Value, e.Allowed)
}

// New returns the settings of a room about which nothing was said yet: all that have a
// default have it. The two limits have none: a room without limits is a mistake, not a wish.
func New() (s Settings) {
	fields.Start(&s)
	return s
}

// WithDefaults returns a copy in which settings left at zero have their default, where zero
// does not mean something itself. A curve factor of 0 cannot be told from one left out; the
// policy Even is what it would mean.
func (s Settings) WithDefaults() Settings {
	fields.Fill(&s)
	return s
}

// complete reports whether no default is missing.
func (s *Settings) complete() bool { return fields.Filled(s) }

// Validate reports every setting that cannot be used, joined; each part is a
// *FieldError. It expects defaults to be filled in: zero is judged as zero.
func (s Settings) Validate() error {
	var c checks
	judge(&c, "", fields, &s)
	c.routes(&s)
	c.events(s.Events)
	c.front(&s.Front)
	return errors.Join(c...)
}

// judge adds the settings of a T that are not allowed. prefix is where in a room the T is.
func judge[T any](c *checks, prefix string, fields settings.Table[T], t *T) {
	for _, r := range fields.Refused(t) {
		c.add(prefix+r.Name, r.Given, r.Allowed)
	}
}

// checks gathers what is wrong, so that an operator sees all of it at once.
type checks []error

func (c *checks) add(field, value, allowed string) {
	*c = append(*c, &FieldError{Field: field, Value: value, Allowed: allowed})
}

func (c *checks) problem(field, problem string) {
	*c = append(*c, &FieldError{Field: field, Problem: problem})
}
