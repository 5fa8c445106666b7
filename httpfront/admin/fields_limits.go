package admin

import (
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/limit"
)

type limitField = field[catalog.RateLimit]

var rateLimitFields = []limitField{
	readOnly("id", "It never changes.", Schema{"type": "string"}, func(l *catalog.RateLimit, _ time.Time) any { return l.ID.String() }),
	readOnly("version", "One more with each change.", Schema{"type": "integer"}, func(l *catalog.RateLimit, _ time.Time) any { return l.Version }),
	text("name", "Unique among rate limits; in headers, metrics and logs.", "1 to 64 letters, digits, '-', '_' or '.'", 0, func(l *catalog.RateLimit) *string { return &l.Name }).must(),
	text("description", "For operators. Default none.", "a text of at most 500 characters", 500, func(l *catalog.RateLimit) *string { return &l.Description }),
	limitEnabled(),
	text("expression", "Which requests are limited.", `an expression of up to 4096 characters, such as http.request.uri.path eq "/login"; "true" for all`, 0,
		func(l *catalog.RateLimit) *string { return &l.Expression }).must(),
	words("characteristics", "What counts together: requests with the same values of all of these. Default none: all requests.",
		`up to 8 fields with one value, such as "ip.src" or "http.request.headers[\"x-api-key\"]", each once`, Schema{"type": "string"}, limit.MaxCharacteristics, []string{},
		func(l *catalog.RateLimit) *[]string { return &l.Characteristics }, func(s string) (string, bool) { return s, s != "" }, func(s string) string { return s }),
	whole("ipv4_prefix", "How many bits of an IPv4 address count. Default 32.", 8, 32, func(l *catalog.RateLimit) *int { return &l.IPv4Prefix }),
	whole("ipv6_prefix", "How many bits of an IPv6 address count. Default 64.", 16, 128, func(l *catalog.RateLimit) *int { return &l.IPv6Prefix }),
	wholeSeconds("period", "The time in which requests are counted, in seconds.", limit.MinPeriod, limit.MaxPeriod, func(l *catalog.RateLimit) *time.Duration { return &l.Period }).must(),
	whole("requests_per_period", "How many may come within a period.", 1, limit.MaxRequests, func(l *catalog.RateLimit) *int { return &l.RequestsPerPeriod }).must(),
	wholeSeconds("mitigation_timeout", "For how many seconds requests are limited once there were too many. Default 0, and never less: until there would be few enough.", 0, limit.MaxMitigation,
		func(l *catalog.RateLimit) *time.Duration { return &l.MitigationTimeout }),
	text("counting_expression", "Which of the requests are counted; it may ask about the response. Default all.", "an expression of up to 4096 characters, such as http.response.code eq 401", 4096,
		func(l *catalog.RateLimit) *string { return &l.CountingExpression }),
	oneOf("action", "What becomes of requests beyond the limit. Default block.", []limit.Action{limit.Block, limit.Queue, limit.Log}, limit.Block, func(l *catalog.RateLimit) *limit.Action { return &l.Action }),
	oneOf("scope", "What counts together: the whole mesh, or each site for itself. Default mesh.", []limit.Scope{limit.Mesh, limit.Site}, limit.Mesh, func(l *catalog.RateLimit) *limit.Scope { return &l.Scope }),
	whole("status_code", "Of the answer to who is blocked. Default 429.", 400, 499, func(l *catalog.RateLimit) *int { return &l.Response.StatusCode }),
	text("content", "The body of that answer. Default a few words in the visitor's language.", "a text of at most 30720 bytes", 0, func(l *catalog.RateLimit) *string { return &l.Response.Content }),
	oneOf("content_type", "What the content is. Default text/plain.", limit.ContentTypes, limit.ContentTypes[0], func(l *catalog.RateLimit) *string { return &l.Response.ContentType }),
	readOnly("created_on", "When it was made.", Schema{"type": "string", "format": "date-time"}, func(l *catalog.RateLimit, _ time.Time) any { return stampOf(l.Created) }).orNull(),
	readOnly("modified_on", "When it was last changed.", Schema{"type": "string", "format": "date-time"}, func(l *catalog.RateLimit, _ time.Time) any { return stampOf(l.Modified) }).orNull(),
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

func limitEnabled() limitField {
	f := truth("enabled", "With false it is as if it were not there. Default true.", func(l *catalog.RateLimit) *bool { return &l.Disabled })
	read := f.read
	f.read = func(r *reader, v value, into, was *catalog.RateLimit) {
		v.yes = !v.yes
		read(r, v, into, was)
	}
	f.show = func(l *catalog.RateLimit, _ time.Time) any { return !l.Disabled }
	return f
}

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
