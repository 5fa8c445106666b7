package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// truthValue is yes or no. Alone on the command line it means yes.
type truthValue struct {
	dst *bool
	not bool // dst says the opposite
}

func (v truthValue) String() string {
	if v.dst == nil {
		return ""
	}
	return strconv.FormatBool(*v.dst != v.not)
}

// Type is the name by which the flag library knows values that may stand alone.
func (v truthValue) Type() string { return "bool" }
func (v truthValue) Set(s string) error {
	switch s {
	case "true":
		*v.dst = !v.not
	case "false":
		*v.dst = v.not
	default:
		return fmt.Errorf("%q is not allowed: true or false", s)
	}
	return nil
}

// timeValue is a moment, with its time zone so that it is the same on every node.
type timeValue struct{ dst *time.Time }

func (v timeValue) String() string {
	if v.dst == nil || v.dst.IsZero() {
		return ""
	}
	return v.dst.Format(time.RFC3339)
}
func (v timeValue) Type() string { return "time" }
func (v timeValue) Set(s string) error {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return fmt.Errorf("%q is not allowed: a time of RFC 3339 with its zone, such as 2026-11-27T10:00:00+01:00 or 2026-11-27T09:00:00Z", s)
	}
	*v.dst = t
	return nil
}

// freezeValue is a duration in which 0 means "not at all", which room.Settings
// writes as less than 0, because its own 0 means the default.
type freezeValue struct{ durationValue }

func (v freezeValue) String() string {
	if v.dst != nil && *v.dst < 0 {
		return "0s"
	}
	return v.durationValue.String()
}
func (v freezeValue) Set(s string) error {
	if err := v.durationValue.Set(s); err != nil {
		return err
	}
	if *v.dst == 0 {
		*v.dst = -1
	}
	return nil
}

// optionalValue is a value that may be left out, which is not the same as its
// zero: then dst stays nil.
type optionalValue[T any] struct {
	dst **T
	of  func(*T) pflag.Value // the value itself, once there is a place for it
}

func (v optionalValue[T]) String() string {
	if v.dst == nil || *v.dst == nil {
		return ""
	}
	return v.of(*v.dst).String()
}
func (v optionalValue[T]) Type() string { return v.kind().Type() }
func (v optionalValue[T]) Set(s string) error {
	into := new(T)
	if err := v.of(into).Set(s); err != nil {
		return err
	}
	*v.dst = into
	return nil
}

// kind returns a value of the kind that v holds.
func (v optionalValue[T]) kind() pflag.Value { return v.of(new(T)) }
