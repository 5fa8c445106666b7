package admin

import (
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/limit"
)

type limitField = field[catalog.RateLimit]

var rateLimitFields = slices.Concat(
	[]limitField{
		readOnly("id", "It never changes.", Schema{"type": "string"}, func(l *catalog.RateLimit, _ time.Time) any { return l.ID.String() }),
		readOnly("version", "One more with each change.", Schema{"type": "integer"}, func(l *catalog.RateLimit, _ time.Time) any { return l.Version }),
	},
	limitsInSeconds(fromTable(limit.Fields, func(l *catalog.RateLimit) *limit.Rule { return &l.Rule }, newLimit().Rule)),
	[]limitField{
		readOnly("created_on", "When it was made.", Schema{"type": "string", "format": "date-time"}, func(l *catalog.RateLimit, _ time.Time) any { return stampOf(l.Created) }).orNull(),
		readOnly("modified_on", "When it was last changed.", Schema{"type": "string", "format": "date-time"}, func(l *catalog.RateLimit, _ time.Time) any { return stampOf(l.Modified) }).orNull(),
	})

// limitsInSeconds has spans as numbers: other APIs for rate limits do.
func limitsInSeconds(all []limitField) []limitField {
	for i := range all {
		switch f := &all[i]; f.name {
		case "period":
			*f = wholeSeconds(f.name, "The time in which requests are counted, in seconds.", limit.MinPeriod, limit.MaxPeriod, func(l *catalog.RateLimit) *time.Duration { return &l.Period }).must()
		case "mitigation_timeout":
			*f = wholeSeconds(f.name, "For how many seconds requests are limited once there were too many. Default 0, and never less: until there would be few enough.", 0, limit.MaxMitigation,
				func(l *catalog.RateLimit) *time.Duration { return &l.MitigationTimeout })
		}
	}
	return all
}

var placedRateLimitFields = withPlace(rateLimitFields, limitCalling)

func limitID(l *catalog.RateLimit) string { return l.ID.String() }

var limitCalling = calling[catalog.RateLimit]{"the id or the name", limitsCalled}

// limitsCalled returns the places of the rate limits that are called so: of the one with
// that id, or else of those with that name.
func limitsCalled(all []catalog.RateLimit, so string) (at []int) {
	if id, err := limit.ParseID(so); err == nil {
		if i := slices.IndexFunc(all, func(l catalog.RateLimit) bool { return l.ID == id }); i >= 0 {
			return []int{i}
		}
	}
	for i := range all {
		if all[i].Name == so {
			at = append(at, i)
		}
	}
	return at
}

// newLimit is a rate limit with all that may be left out.
func newLimit() catalog.RateLimit { return catalog.RateLimit{Rule: limit.Rule{}.WithDefaults()} }

// wholeSeconds is a span in whole seconds.
func wholeSeconds[T any](name, meaning string, lo, hi time.Duration, at func(*T) *time.Duration) field[T] {
	from, to := int(lo/time.Second), int(hi/time.Second)
	f := field[T]{
		name: name, meaning: meaning, allowed: fmt.Sprintf("a whole number of seconds from %d to %d", from, to),
		schema: always(Schema{"type": "integer", "minimum": from, "maximum": to}),
	}
	read := readWhole[T](from, to)
	f.read = func(r *reader, v value, into, _ *T) {
		if n, ok := read(&f, r, v); ok {
			*at(into) = time.Duration(n) * time.Second
		}
	}
	f.show = func(t *T, _ time.Time) any { return int(*at(t) / time.Second) }
	f.copy = func(from, into *T) { *at(into) = *at(from) }
	return f
}
