package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node/settings"
)

// maxBodyFlag binds what a room may say itself.
func maxBodyFlag(fs *pflag.FlagSet, dst *int64) { fs.Var(size.At(dst), "max-body", maxBodyMeaning) }

// checkFields are the settings of one block of checks.
var checkFields = settings.Table[upstream.Check]{
	settings.New("path", "what is requested", requestPath, "", func(c *upstream.Check) *string { return &c.Path }).Must().
		With("With GET, on a new connection each time; redirects are not followed"),
	settings.New("host", "the Host field of the request", hostKind, "", func(c *upstream.Check) *string { return &c.Host }).Unless("the origin's"),
	settings.New("interval", "time from one check to the next", settings.Duration(100*time.Millisecond, time.Hour, 1), 5*time.Second, func(c *upstream.Check) *time.Duration { return &c.Interval }).
		With("Up to a tenth longer or shorter. Shorter: a dead origin is noticed sooner; every node asks every origin"),
	settings.New("timeout", "time for the whole answer, at most interval", settings.Duration(10*time.Millisecond, time.Hour, 1), 2*time.Second, func(c *upstream.Check) *time.Duration { return &c.Timeout }),
	settings.New("healthy-threshold", "good answers in a row that bring an origin in", settings.Int(1, 100), 2, func(c *upstream.Check) *int { return &c.Healthy }),
	settings.New("unhealthy-threshold", "bad answers in a row that take it out", settings.Int(1, 100), 3, func(c *upstream.Check) *int { return &c.Unhealthy }),
	settings.List("expected-status", "status codes of a good answer", statuses, func(c *upstream.Check) *[]upstream.StatusRange { return &c.Status }),
}

func defaultCheck() upstream.Check {
	c := upstream.Check{Status: []upstream.StatusRange{{First: 200, Last: 399}}}
	checkFields.Start(&c)
	return c
}
