package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// The types below are flag values. Set refuses what makes no sense and says
// what is allowed, for the command line and for the configuration file alike.

type intValue struct {
	dst      *int
	min, max int
}

func (v intValue) String() string {
	if v.dst == nil {
		return ""
	}
	return strconv.Itoa(*v.dst)
}
func (v intValue) Type() string { return "number" }
func (v intValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < v.min || n > v.max {
		return fmt.Errorf("%q is not allowed: a whole number from %d to %d", s, v.min, v.max)
	}
	*v.dst = n
	return nil
}

type floatValue struct {
	dst      *float64
	min, max float64
}

func (v floatValue) String() string {
	if v.dst == nil {
		return ""
	}
	return strconv.FormatFloat(*v.dst, 'g', -1, 64)
}
func (v floatValue) Type() string { return "number" }
func (v floatValue) Set(s string) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= v.min && f <= v.max) {
		return fmt.Errorf("%q is not allowed: a number from %g to %g", s, v.min, v.max)
	}
	*v.dst = f
	return nil
}

type durationValue struct {
	dst      *time.Duration
	min, max time.Duration
}

func (v durationValue) String() string {
	if v.dst == nil {
		return ""
	}
	return shortDuration(*v.dst)
}
func (v durationValue) Type() string { return "duration" }
func (v durationValue) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d < v.min || d > v.max {
		return fmt.Errorf("%q is not allowed: a duration from %s to %s, such as %s",
			s, shortDuration(v.min), shortDuration(v.max), shortDuration(v.example()))
	}
	*v.dst = d
	return nil
}

func (v durationValue) example() time.Duration {
	if *v.dst > 0 {
		return *v.dst
	}
	return v.max
}

// shortDuration writes 5m0s as 5m.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// enumValue is one of a few words.
type enumValue[T ~string] struct {
	dst     *T
	allowed []T
}

func (v enumValue[T]) String() string {
	if v.dst == nil {
		return ""
	}
	return string(*v.dst)
}
func (v enumValue[T]) Type() string { return "word" }
func (v enumValue[T]) Set(s string) error {
	if !slices.Contains(v.allowed, T(s)) {
		words := make([]string, len(v.allowed))
		for i, w := range v.allowed {
			words[i] = string(w)
		}
		return fmt.Errorf("%q is not allowed: one of %s", s, strings.Join(words, ", "))
	}
	*v.dst = T(s)
	return nil
}

// codeValue is one of a few status codes.
type codeValue struct {
	dst     *int
	allowed []int
}

func (v codeValue) String() string {
	if v.dst == nil {
		return ""
	}
	return strconv.Itoa(*v.dst)
}
func (v codeValue) Type() string { return "code" }
func (v codeValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || !slices.Contains(v.allowed, n) {
		return fmt.Errorf("%q is not allowed: one of %s", s, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(v.allowed)), ", "), "[]"))
	}
	*v.dst = n
	return nil
}

// addressValue is a host and a port to listen on or to reach.
type addressValue struct{ dst *string }

func (v addressValue) String() string {
	if v.dst == nil {
		return ""
	}
	return *v.dst
}
func (v addressValue) Type() string { return "host:port" }
func (v addressValue) Set(s string) error {
	if err := checkAddress(s); err != nil {
		return err
	}
	*v.dst = s
	return nil
}

func checkAddress(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is not allowed: host:port or :port, such as 127.0.0.1:8080 or [::1]:8080", s)
	}
	return nil
}

// nameValue is a word of letters, digits, "-", "_" and, where allowed, ".".
type nameValue struct {
	dst   *string
	extra string // characters allowed besides letters and digits
	max   int
}

func (v nameValue) String() string {
	if v.dst == nil {
		return ""
	}
	return *v.dst
}
func (v nameValue) Type() string { return "name" }
func (v nameValue) Set(s string) error {
	bad := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(v.extra, r))
	}
	if s == "" || len(s) > v.max || strings.ContainsFunc(s, bad) {
		return fmt.Errorf("%q is not allowed: 1 to %d letters, digits or any of %q", s, v.max, v.extra)
	}
	*v.dst = s
	return nil
}

// hostValue is the exact host of a room's route, in the form in which those of requests
// are compared.
type hostValue struct{ dst *string }

func (v hostValue) String() string {
	if v.dst == nil {
		return ""
	}
	return *v.dst
}
func (v hostValue) Type() string { return "host" }
func (v hostValue) Set(s string) error {
	host, ok := room.NormalHost(s)
	if !ok {
		return fmt.Errorf("%q is not allowed: a host name without scheme, port or wildcard, such as tickets.example.com, in ASCII (xn--bcher-kva.example)", s)
	}
	*v.dst = host
	return nil
}

// pathValue is the path prefix of a room's route, in the form in which those of requests
// are compared: however it is written here, requests in any spelling are found there.
type pathValue struct{ dst *string }

func (v pathValue) String() string {
	if v.dst == nil {
		return ""
	}
	return *v.dst
}
func (v pathValue) Type() string { return "path" }
func (v pathValue) Set(s string) error {
	if err := checkPath(s); err != nil {
		return fmt.Errorf("%q is not allowed: %w", s, err)
	}
	path, err := room.RoutePath(s)
	if err != nil {
		return fmt.Errorf("%q is not allowed: want %w", s, err)
	}
	*v.dst = path
	return nil
}

func checkPath(s string) error {
	switch {
	case !strings.HasPrefix(s, "/"):
		return errors.New("a path starts with /")
	case strings.ContainsAny(s, "?#"):
		return errors.New("a path has no query and no fragment")
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errors.New("a path has no spaces or control characters")
	}
	return nil
}
