package room

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Defaults of the settings that an operator may leave out.
const (
	DefaultCurveFactor     = 1.0
	DefaultBucketSpan      = time.Minute
	DefaultRefreshInterval = 20 * time.Second
	DefaultPlaceKept       = 5 * time.Minute
	DefaultSession         = 5 * time.Minute
	DefaultShareFreeze     = 15 * time.Minute
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

// WithDefaults returns a copy in which settings left at zero have their default.
// The two limits have none: a room without limits is a mistake, not a wish. A
// curve factor of 0 cannot be told from one left out; the policy Even is what
// it would mean.
func (s Settings) WithDefaults() Settings {
	setDefault(&s.Path, "/")
	setDefault(&s.SessionDuration, DefaultSession)
	setDefault(&s.QueueingMethod, FIFO)
	setDefault(&s.Policy, Escrow)
	setDefault(&s.CurveFactor, DefaultCurveFactor)
	setDefault(&s.BucketSpan, DefaultBucketSpan)
	setDefault(&s.RefreshInterval, DefaultRefreshInterval)
	setDefault(&s.PlaceKept, DefaultPlaceKept)
	setDefault(&s.QueueingStatusCode, 200)
	setDefault(&s.OnPartition, PartitionHold)
	setDefault(&s.ShareFreeze, DefaultShareFreeze)
	return s
}

// complete reports whether no default is missing.
func (s *Settings) complete() bool {
	return s.Path != "" && s.SessionDuration != 0 && s.QueueingMethod != "" && s.Policy != "" && s.CurveFactor != 0 &&
		s.BucketSpan != 0 && s.RefreshInterval != 0 && s.PlaceKept != 0 && s.QueueingStatusCode != 0 &&
		s.OnPartition != "" && s.ShareFreeze != 0
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports every setting that cannot be used, joined; each part is a
// *FieldError. It expects defaults to be filled in: zero is judged as zero.
func (s Settings) Validate() error {
	var c checks
	c.text("name", s.Name, 64, isName)
	c.routes(&s)
	c.limit("total-active-users", s.TotalActiveUsers)
	c.limit("new-users-per-minute", s.NewUsersPerMinute)
	c.session("session-duration", s.SessionDuration)
	c.method("queueing-method", s.QueueingMethod)
	c.oneOf("policy", string(s.Policy), string(Escrow), string(Even), string(Curve), string(Counter), string(Open))
	if math.IsNaN(s.CurveFactor) || s.CurveFactor < 0 || s.CurveFactor > 8 {
		c.add("curve-factor", strconv.FormatFloat(s.CurveFactor, 'g', -1, 64), "a number from 0 to 8")
	}
	c.span("bucket-span", s.BucketSpan, time.Second, time.Minute, time.Second)
	c.span("refresh-interval", s.RefreshInterval, time.Second, 10*time.Minute, time.Second)
	c.span("place-kept", s.PlaceKept, time.Second, 24*time.Hour, time.Second)
	if !slices.Contains([]int{200, 202, 429}, s.QueueingStatusCode) {
		c.add("queueing-status-code", strconv.Itoa(s.QueueingStatusCode), "200, 202 or 429")
	}
	for _, command := range s.EnabledOriginCommands {
		c.oneOf("enabled-origin-commands", string(command), string(Revoke))
	}
	c.oneOf("on-partition", string(s.OnPartition), string(PartitionHold), string(PartitionOpen))
	if s.ShareFreeze >= 0 { // any negative span means not at all
		c.span("share-freeze", s.ShareFreeze, time.Second, 24*time.Hour, 1)
	}
	c.events(s.Events)
	c.front(&s.Front)
	return errors.Join(c...)
}

// checks gathers what is wrong, so that an operator sees all of it at once.
type checks []error

func (c *checks) add(field, value, allowed string) {
	*c = append(*c, &FieldError{Field: field, Value: value, Allowed: allowed})
}

func (c *checks) problem(field, problem string) {
	*c = append(*c, &FieldError{Field: field, Problem: problem})
}

func (c *checks) span(field string, d, lo, hi, step time.Duration) {
	if d >= lo && d <= hi && d%step == 0 {
		return
	}
	c.add(field, d.String(), fmt.Sprintf("a duration from %v to %v, in steps of %v", lo, hi, step))
}

func (c *checks) oneOf(field, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.add(field, value, "one of "+strings.Join(allowed, ", "))
	}
}

func (c *checks) text(field, value string, most int, ok func(byte) bool) {
	good := value != "" && len(value) <= most
	for i := 0; good && i < len(value); i++ {
		good = ok(value[i])
	}
	if !good {
		c.add(field, value, fmt.Sprintf("1 to %d letters, digits, '-', '_' or '.'", most))
	}
}

func (c *checks) host(field, value string) {
	if normal, _ := NormalHost(value); normal != value {
		c.add(field, value, "a host name in lower case and ASCII (xn--), without a port or a dot at its end; empty for every host")
	}
}

func (c *checks) path(field, value string) {
	if value != "" && !isRoutePath(value) {
		c.add(field, value, routePaths+", decoded and with single slashes")
	}
}

func isName(b byte) bool { return isCookieByte(b) || b == '.' }

func isCookieByte(b byte) bool {
	return b == '-' || b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
