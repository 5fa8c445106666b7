package admin

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/settings"
)

type limitField = field[catalog.RateLimit]

var rateLimitFields = slices.Concat(
	[]limitField{
		readOnly("id", "It never changes.", Schema{"type": "string"}, func(l *catalog.RateLimit, _ time.Time) any { return l.ID.String() }),
		readOnly("version", "One more with each change.", Schema{"type": "integer"}, func(l *catalog.RateLimit, _ time.Time) any { return l.Version }),
	},
	limitsInSeconds(fromTable(limit.Fields, func(l *catalog.RateLimit) *limit.Rule { return &l.Rule }, newLimit().Rule)),
	[]limitField{
		moment("created_on", "When it was made.", func(l *catalog.RateLimit, _ time.Time) time.Time { return l.Created }),
		moment("modified_on", "When it was last changed.", func(l *catalog.RateLimit, _ time.Time) time.Time { return l.Modified }),
	})

// limitsInSeconds has spans as numbers: other APIs for rate limits do.
func limitsInSeconds(all []limitField) []limitField {
	for i := range all {
		switch f := &all[i]; f.name {
		case "period":
			*f = single(settings.New(f.name, "the time in which requests are counted, in seconds",
				wholeSeconds(limit.MinPeriod, limit.MaxPeriod), 0, func(l *catalog.RateLimit) *time.Duration { return &l.Period }).Must())
		case "mitigation_timeout":
			*f = single(settings.New(f.name, "for how many seconds requests are limited once there were too many",
				wholeSeconds(0, limit.MaxMitigation), 0, func(l *catalog.RateLimit) *time.Duration { return &l.MitigationTimeout }))
			f.meaning = strings.Replace(f.meaning, "Default 0", "Default 0, and never less: until there would be few enough", 1)
		}
	}
	return all
}

// newLimit is a rate limit with all that may be left out.
func newLimit() catalog.RateLimit { return catalog.RateLimit{Rule: limit.Rule{}.WithDefaults()} }

// wholeSeconds is a span that is written as a number of seconds.
func wholeSeconds(lo, hi time.Duration) settings.Kind[time.Duration] {
	seconds := settings.Int(int(lo/time.Second), int(hi/time.Second))
	parse := func(s string) (time.Duration, bool) {
		n, err := strconv.Atoi(s)
		return time.Duration(n) * time.Second, err == nil
	}
	return settings.Of(settings.Spec{Allowed: strings.Replace(seconds.Allowed, "number", "number of seconds", 1), Schema: seconds.Schema}, parse,
		func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) },
		func(d time.Duration) bool { return d >= lo && d <= hi })
}
