package limit

import (
	"fmt"
	"time"

	"github.com/ropeline/ropeline/node/settings"
)

// Fields are the settings of a rule: all that is known of names, meanings, bounds and
// defaults.
var Fields = settings.Table[Rule]{
	settings.New("name", "unique among rate limits; in headers, metrics and logs", settings.Letters(1, MaxName, "-_."), "", func(r *Rule) *string { return &r.Name }).Must(),
	settings.New("description", "for operators", settings.Text(maxDescription, "a text of at most 500 characters"), "", func(r *Rule) *string { return &r.Description }),
	settings.New("enabled", "with false it is as if it were not there", settings.Not(), false, func(r *Rule) *bool { return &r.Disabled }),
	settings.New("expression", "which requests are limited; true for all", settings.Expression(`http.request.uri.path eq "/login"`), "", func(r *Rule) *string { return &r.Expression }).Must().
		With("An [expression](rules.md)"),
	settings.List("characteristics", "what counts together: requests with the same values of all of these", characteristics(), func(r *Rule) *[]string { return &r.Characteristics }).Unless("none: all requests").
		With("See below"),
	settings.New("ipv4-prefix", "how many bits of an IPv4 address count", settings.Int(8, 32), 32, func(r *Rule) *int { return &r.IPv4Prefix }),
	settings.New("ipv6-prefix", "how many bits of an IPv6 address count", settings.Int(16, 128), 64, func(r *Rule) *int { return &r.IPv6Prefix }).
		With("Whoever has one address of a /64 has them all"),
	settings.New("period", "the time in which requests are counted", settings.Duration(MinPeriod, MaxPeriod, time.Second), 0, func(r *Rule) *time.Duration { return &r.Period }).Must(),
	settings.New("requests-per-period", "how many may come within a period", settings.Int(1, MaxRequests), 0, func(r *Rule) *int { return &r.RequestsPerPeriod }).Must(),
	settings.New("mitigation-timeout", "for how long requests are limited once there were too many; at least until there would be few enough", settings.Duration(0, MaxMitigation, time.Second), 0, func(r *Rule) *time.Duration { return &r.MitigationTimeout }),
	settings.New("counting-expression", "which of the requests are counted; it may ask about the response", settings.Text(4096, "an expression of up to 4096 characters, such as http.response.code eq 401"), "", func(r *Rule) *string { return &r.CountingExpression }).Unless("all"),
	settings.New("action", "what becomes of requests beyond the limit", settings.Word(Block, Queue, Log), Block, func(r *Rule) *Action { return &r.Action }).
		With("See below"),
	settings.New("scope", "what counts together: the whole mesh, or each site for itself", settings.Word(Mesh, Site), Mesh, func(r *Rule) *Scope { return &r.Scope }),
	settings.New("status-code", "of the answer to who is blocked", settings.Int(400, 499), 429, func(r *Rule) *int { return &r.Response.StatusCode }),
	settings.New("content", "the body of that answer", settings.String("text", fmt.Sprintf("a text of at most %d bytes", MaxContent), func(s string) bool { return len(s) <= MaxContent }), "", func(r *Rule) *string { return &r.Response.Content }).
		Unless("a few words in the visitor's language"),
	settings.New("content-type", "what the content is", settings.Word(ContentTypes...), ContentTypes[0], func(r *Rule) *string { return &r.Response.ContentType }),
}

// characteristics are fields of the language, in which commas may stand. Which there are is
// not known here.
func characteristics() settings.Kind[[]string] {
	k := settings.Row(settings.String("text", "a field", func(s string) bool { return s != "" }))
	k.Whole, k.Schema["maxItems"] = true, MaxCharacteristics
	k.Allowed = `up to 8 fields with one value, such as "ip.src" or "http.request.headers[\"x-api-key\"]", each once`
	k.Valid = nil // checkCharacteristics says which of them is wrong
	return k
}
