package admin_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/ropeline/ropeline/httpfront/operator/admin"
)

// limit is what a field may be at its limits and what it may not be just beyond them.
type limit struct {
	good    []any
	bad     []any
	allowed string         // of each message about bad
	with    map[string]any // beside it
}

var (
	yesOrNo = limit{good: []any{true, false}, allowed: "true or false"}
	long    = strings.Repeat
)

func word(allowed string, good ...any) limit {
	return limit{good: good, bad: []any{"", "x", strings.ToUpper(good[0].(string))}, allowed: allowed}
}

func number(allowed string, lo, hi int) limit {
	return limit{good: []any{lo, hi}, bad: []any{lo - 1, hi + 1, 1.5, raw("1e30"), raw("-1e400")}, allowed: allowed}
}

// orZero takes a zero as well.
func orZero(l limit, zero any) limit {
	l.good = append(slices.Clone(l.good), zero)
	l.bad = slices.DeleteFunc(slices.Clone(l.bad), func(v any) bool { return v == zero })
	return l
}

func duration(allowed string, good, bad []any) limit {
	return limit{good: good, bad: append(bad, "", "-1s", "5", "1 m"), allowed: allowed}
}

// neighbours are what another one is called in an ordered list.
func neighbours(allowed string) limit {
	return limit{good: []any{""}, bad: []any{"x", long("0", 32)}, allowed: allowed}
}

// raw is JSON as it is.
type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

var (
	hosts = limit{
		good: []any{"", "shop.example", "Shop.Example.", "[2001:db8::1]", "xn--bcher-kva.example"}, allowed: "a host name",
		bad: []any{"http://shop.example", "*.shop.example", "shop.example:80", "a b", "bücher.example", long("a", 254), "a..b"},
	}
	paths = limit{
		good: []any{"", "/", "/a/b", "/caf%C3%A9", "/" + long("a", 2047)}, allowed: `begins with "/"`,
		bad: []any{"a", "/a?b", "/a#b", "/../a", "/a;b", `/a\b`, "/a%2Fb", "/" + long("a", 2048)},
	}
	names     = limit{good: []any{"a", "A-z_0.9", long("n", 64)}, bad: []any{"", "a b", "ä", long("n", 65)}, allowed: "1 to 64 letters"}
	texts500  = limit{good: []any{"", long("ä", 500)}, bad: []any{long("ä", 501)}, allowed: "at most 500 characters"}
	pages     = limit{good: []any{"", long("p", 1<<20)}, bad: []any{long("p", 1<<20+1)}, allowed: "at most 1048576 bytes"}
	users     = number("a whole number from 1 to 2147483647", 1, 2147483647)
	minutes   = orZero(number("a whole number of minutes from 1 to 1440", 1, 1440), 0)
	seconds   = limit{good: []any{1, 1.001, 86400}, bad: []any{0, 0.999, 1.0005, 86400.001, -1, raw("1e400")}, allowed: "a number of seconds from 1 to 86400"}
	orders    = word("one of fifo, random, passthrough, reject", "fifo", "random", "passthrough", "reject")
	modes     = word("one of off, invisible, visible_non_interactive, visible_managed", "off", "invisible", "visible_non_interactive", "visible_managed")
	actions   = word("one of log, infinite_queue", "log", "infinite_queue")
	bits4     = number("a whole number from 8 to 32", 8, 32)
	positions = limit{good: []any{tree{"index": 1}}, bad: []any{tree{}, tree{"index": 1, "before": ""}}, allowed: "an object with one of index"}
	places    = limit{good: []any{1}, bad: []any{0, 2, -1}, allowed: "from 1"}
	visitors  = number("a whole number from 0 to 1048576", 0, 1048576)
)

func routesOf(n int) (all []any) {
	for i := range n {
		all = append(all, tree{"host": fmt.Sprintf("h%d.example", i)})
	}
	return all
}

// roomLimits are those of rooms.
var roomLimits = map[string]limit{
	"name": names, "description": texts500, "host": hosts, "path": paths,
	"additional_routes":         {good: []any{routesOf(0), routesOf(1), routesOf(100)}, bad: []any{routesOf(101)}, allowed: "at most 100", with: tree{"cookie_suffix": "x"}},
	"additional_routes[0].host": hosts, "additional_routes[0].path": paths,
	"cookie_suffix":              {good: []any{"", "a-Z_9", long("s", 64)}, bad: []any{"a.b", "a b", "ä", long("s", 65)}, allowed: "up to 64 letters"},
	"cookie_attributes":          {good: []any{tree{}, tree{"secure": "always"}}, allowed: "an object"},
	"cookie_attributes.samesite": orZero(word("one of auto, lax, none, strict", "auto", "lax", "none", "strict"), ""),
	"cookie_attributes.secure":   orZero(word("one of auto, always, never", "auto", "always", "never"), ""), "cookie_attributes.partitioned": yesOrNo,
	"total_active_users": users, "new_users_per_minute": users, "session_duration": minutes, "session_duration_seconds": seconds,
	"disable_session_renewal": yesOrNo, "queueing_method": orders, "queue_all": yesOrNo, "dry_run": yesOrNo, "hold_while_down": yesOrNo, "suspended": yesOrNo,
	"queueing_status_code":    {good: []any{0, 200, 202, 429}, bad: []any{199, 201, 203, 428, 430, -200, raw("1e30"), raw("200.5")}, allowed: "200, 202 or 429"},
	"enabled_origin_commands": {good: []any{[]any{}, []any{"revoke"}}, bad: []any{[]any{"revoke", "revoke"}}, allowed: "a list of revoke"},
	"turnstile_mode":          modes, "turnstile_action": actions, "json_response_enabled": yesOrNo, "custom_page_html": pages,
	"default_template_language": {good: []any{"en-US", "de-DE", "vi-VN"}, bad: []any{"", "de", "de-AT", "xx-XX"}, allowed: "de-DE, el-GR, en-US"},
	"policy":                    word("one of escrow, even, curve, counter, open", "escrow", "even", "curve", "counter", "open"),
	"on_partition":              word("one of hold, open", "hold", "open"),
	"curve_factor":              {good: []any{0.01, 1, 8}, bad: []any{0, 0.009, 8.01, -1, raw("1e400")}, allowed: "a number from 0.01 to 8"},
	"share_freeze":              duration("a duration from 1s to 24h", []any{"0s", "1s", "24h"}, []any{"999ms", "24h1s"}),
	"bucket_span":               duration("a duration from 1s to 1m", []any{"1s", "60s"}, []any{"0s", "61s", "1.5s"}),
	"refresh_interval":          duration("a duration from 1s to 10m", []any{"1s", "10m"}, []any{"0s", "601s", "1500ms"}),
	"place_kept":                duration("a duration from 1s to 24h", []any{"1s", "24h0m0s"}, []any{"0s", "24h1s", "1.5s"}),
	"bind_pass":                 {good: []any{[]any{}, []any{"address"}, []any{"user-agent", "address"}}, bad: []any{[]any{"address", "user-agent", "address"}}, allowed: "a list of address, user-agent"},
	"bind_ipv4_prefix":          bits4, "bind_ipv6_prefix": number("a whole number from 16 to 64", 16, 64),
	"shared_passes":      word("one of ignore, log, queue", "ignore", "log", "queue"),
	"addresses_per_pass": number("a whole number from 1 to 6", 1, 6), "max_new_visitors_per_address": visitors, "max_new_visitors": visitors,
	"message":         {good: []any{"", long("ä", 300), "a\nb"}, bad: []any{long("ä", 301)}, allowed: "at most 300 characters"},
	"frame_ancestors": {good: []any{[]any{"none"}, []any{"self", "https://shop.example"}}, allowed: `["none"], or a list of self`, bad: []any{make([]any, 101)}},
}

// moments are times of an event that starts a day after begin.
func moments(good []time.Duration, bad []time.Duration, allowed string, with tree) limit {
	l := limit{allowed: allowed, with: with}
	start := begin.AddDate(0, 0, 1)
	for _, d := range good {
		l.good = append(l.good, start.Add(d))
	}
	for _, d := range bad {
		l.bad = append(l.bad, start.Add(d))
	}
	return l
}

var eventLimits = map[string]limit{
	"name": names, "description": texts500,
	"event_start_time":       {good: []any{"2026-11-02T10:00:00+01:00"}, bad: []any{"", "tomorrow", "2026-11-02", "2026-11-02T09:00:00", "1969-12-31T23:59:59Z"}, allowed: "a time as of RFC 3339"},
	"event_end_time":         moments([]time.Duration{time.Minute}, []time.Duration{time.Minute - time.Second, -time.Hour}, "at least 1m0s after the start", nil),
	"prequeue_start_time":    moments([]time.Duration{-5 * time.Minute, -12 * time.Hour}, []time.Duration{-5*time.Minute + time.Second, -12*time.Hour - time.Second}, "5m0s to 12h0m0s before the start", nil),
	"shuffle_at_event_start": {good: []any{true, false}, allowed: "true or false", with: tree{"prequeue_start_time": begin.AddDate(0, 0, 1).Add(-time.Hour)}},
	"suspended":              yesOrNo,
	"total_active_users":     {good: users.good, bad: users.bad, allowed: users.allowed, with: tree{"new_users_per_minute": 5}},
	"new_users_per_minute":   {good: users.good, bad: users.bad, allowed: users.allowed, with: tree{"total_active_users": 5}},
	"session_duration":       minutes, "session_duration_seconds": seconds, "disable_session_renewal": yesOrNo, "queueing_method": orders, "custom_page_html": pages,
	"turnstile_mode": modes, "turnstile_action": actions,
}

var ruleLimits = map[string]limit{
	"action":      orZero(word("one of bypass_waiting_room, bypass", "bypass_waiting_room", "bypass"), ""),
	"expression":  {good: []any{`http.host eq "a"`}, bad: []any{""}, allowed: "an expression"},
	"description": texts500, "enabled": yesOrNo,
	"position": positions, "position.index": places, "position.before": neighbours("the id of another one"), "position.after": neighbours("the id of another one"),
}

var rateLimitLimits = map[string]limit{
	"name": names, "description": texts500, "enabled": yesOrNo,
	"expression":          {good: []any{"true"}, bad: []any{""}, allowed: "an expression"},
	"characteristics":     {good: []any{[]any{}, []any{"ip.src"}}, bad: []any{[]any{"ip.src", "ip.src"}, []any{""}, make([]any, 9)}, allowed: "fields with one value"},
	"ipv4_prefix":         bits4,
	"ipv6_prefix":         number("a whole number from 16 to 128", 16, 128),
	"period":              number("a whole number of seconds from 1 to 86400", 1, 86400),
	"requests_per_period": number("a whole number from 1 to 1000000000", 1, 1000000000),
	"mitigation_timeout":  number("a whole number of seconds from 0 to 86400", 0, 86400),
	"counting_expression": {good: []any{"", "http.response.code eq 401"}, bad: []any{long("x", 4097)}, allowed: "an expression"},
	"action":              word("one of block, queue, log", "block", "queue", "log"),
	"scope":               word("one of mesh, site", "mesh", "site"),
	"status_code":         number("a whole number from 400 to 499", 400, 499),
	"content":             {good: []any{"", long("c", 30<<10)}, bad: []any{long("c", 30<<10+1)}, allowed: "at most 30720 bytes"},
	"content_type":        word("one of text/plain, text/html, application/json, text/xml", "text/plain", "text/html", "application/json", "text/xml"),
	"position":            positions, "position.index": places,
	"position.before": neighbours("the id or the name of another one"), "position.after": neighbours("the id or the name of another one"),
}

const rateLimits = "/api/v1/rate_limits"

func newRateLimit(name string) tree {
	return tree{"name": name, "expression": "true", "period": 60, "requests_per_period": 5}
}

// objects are all that can be made, with the tables of their fields.
var objects = []struct {
	schema string
	limits map[string]limit
	base   tree
	path   func(b *bench) string
}{
	{"RoomNew", roomLimits, newRoom("a"), func(*bench) string { return rooms }},
	{"EventNew", eventLimits, newEvent("e", 1), func(b *bench) string { return b.made("r") + "/events" }},
	{"RuleNew", ruleLimits, newRule("a"), func(b *bench) string { return b.made("r") + "/rules" }},
	{"RateLimitNew", rateLimitLimits, newRateLimit("a"), func(*bench) string { return rateLimits }},
	{"PreviewNew", map[string]limit{"custom_html": pages}, tree{"custom_html": ""}, func(*bench) string { return rooms + "/preview" }},
}

// TestLimits: every field, each of its limits just inside and just outside. What is taken is as documented; what is refused
// is told by the field, what was given, and what is allowed.
func TestLimits(t *testing.T) {
	doc := newBench(t).document()
	for _, o := range objects {
		for _, name := range slices.Sorted(maps.Keys(o.limits)) {
			t.Run(o.schema+"."+name, func(t *testing.T) {
				l := o.limits[name]
				for _, v := range l.good {
					b := newBench(t)
					path := o.path(b)
					route, _ := b.api.Route("POST", path)
					if err := b.compare(doc, *route, path, put(o.base, name, v, l.with), 200); err != nil {
						t.Errorf("%.100v: the document does not take it: %v", v, err)
					}
				}
				b := newBench(t)
				path := o.path(b)
				for _, v := range l.bad {
					ms := b.refuses(400, "POST", path, put(o.base, name, v, l.with))
					if !slices.ContainsFunc(ms, func(m mistake) bool { return about(m, name, v, l.allowed) }) {
						t.Errorf("%.100v: it says %.500v, want %s and %q", v, ms, name, l.allowed)
					}
				}
			})
		}
	}
}

// put returns an object with a value at a place, and others beside it.
func put(base tree, name string, v any, with tree) tree {
	switch outer, inner, nested := strings.Cut(name, "."); {
	case nested && strings.HasSuffix(outer, "[0]"):
		return plus(base, strings.TrimSuffix(outer, "[0]"), []any{tree{"host": "x.example", inner: v}}, "cookie_suffix", "x")
	case nested:
		return plus(base, outer, tree{inner: v})
	}
	all := plus(base, name, v)
	maps.Copy(all, with)
	return all
}

// about reports whether a mistake names the field, the value and what is allowed.
func about(m mistake, name string, v any, allowed string) bool {
	if !strings.HasPrefix(m.Message, name) || !strings.HasPrefix(m.Field, name) || !strings.Contains(m.Message, allowed) || !strings.Contains(m.Allowed, allowed) {
		return false
	}
	given := m.Value
	if s, ok := v.(string); ok && len(s) <= 80 && given != fmt.Sprintf("%q", s) {
		return false
	}
	return strings.Contains(m.Message, given) && given != ""
}

// TestOtherTypes: every field is refused a value of another JSON type.
func TestOtherTypes(t *testing.T) {
	doc := newBench(t).document()
	kinds := map[string]any{"boolean": true, "number": 1.5, "string": "text", "array": []any{1}, "object": tree{}}
	for _, o := range objects {
		b := newBench(t)
		path := o.path(b)
		for name, s := range fieldsOf(doc.Components.Schemas[o.schema].Value, "") {
			for kind, v := range kinds {
				if s.Type.Includes(kind) {
					continue
				}
				ms := b.refuses(400, "POST", path, put(o.base, name, v, nil))
				if !slices.ContainsFunc(ms, func(m mistake) bool { return m.Field == name && m.Allowed != "" && m.Value != "" }) {
					t.Errorf("%s.%s, %s: %v", o.schema, name, kind, ms)
				}
			}
		}
	}
}

// TestEveryFieldIsInATable of limits.
func TestEveryFieldIsInATable(t *testing.T) {
	doc := newBench(t).document()
	for _, o := range objects {
		fields := fieldsOf(doc.Components.Schemas[o.schema].Value, "")
		is(t, o.schema+": fields with limits", slices.Sorted(maps.Keys(o.limits)), slices.Sorted(maps.Keys(fields)))
		for name, l := range o.limits {
			isBool := fields[name].Type.Includes("boolean") || name == "cookie_attributes"
			if len(l.good) == 0 || len(l.bad) == 0 && !isBool {
				t.Errorf("%s.%s has no limits in the table", o.schema, name)
			}
		}
	}
	zone := slices.Collect(maps.Keys(fieldsOf(doc.Components.Schemas["ZoneChange"].Value, "")))
	is(t, "fields of a zone, which are in TestZoneSettings", zone, []string{"search_engine_crawler_bypass"})
}

// fieldsOf returns the fields of an object that can be set, those of objects in it as well.
func fieldsOf(s *openapi3.Schema, at string) map[string]*openapi3.Schema {
	all := map[string]*openapi3.Schema{}
	for name, p := range s.Properties {
		if strings.HasPrefix(p.Value.Description, "Read only") {
			continue
		}
		all[at+name] = p.Value
		maps.Copy(all, fieldsOf(p.Value, at+name+"."))
		if items := p.Value.Items; items != nil {
			maps.Copy(all, fieldsOf(items.Value, at+name+"[0]."))
		}
	}
	return all
}

// TestAllMistakesAreTold at once, each once.
func TestAllMistakesAreTold(t *testing.T) {
	b := newBench(t)
	ms := b.refuses(400, "POST", rooms, tree{
		"name": "a b", "total_active_users": "many", "new_users_per_minute": 0, "qeue_all": true, "message": long("x", 301),
		"additional_routes": []any{tree{"host": "x:1", "paht": "/"}, 7}, "cookie_attributes": tree{"samesite": "x"},
	})
	var fields []string
	for _, m := range ms {
		fields = append(fields, m.Field)
		if m.Field == "qeue_all" && (m.Code != admin.CodeUnknown || !strings.Contains(m.Message, "did you mean queue_all?")) {
			t.Errorf("it says %v", m)
		}
		if m.Field == "host" && m.Code != admin.CodeMissing {
			t.Errorf("it says %v", m)
		}
	}
	slices.Sort(fields)
	is(t, "it tells of", fields, []string{
		"additional_routes", "additional_routes[0].host", "additional_routes[0].paht", "additional_routes[1]", "cookie_attributes.samesite", "host", "message", "name",
		"new_users_per_minute", "qeue_all", "total_active_users",
	})
}

// TestSettingsThatDoNotGoTogether are refused by one of them.
func TestSettingsThatDoNotGoTogether(t *testing.T) {
	b := newBench(t)
	other := b.made("other")
	b.want("POST", rooms, plus(newRoom("suffix"), "cookie_suffix", "x"))
	events := other + "/events"
	for _, tt := range []struct {
		path        string
		body        tree
		field, says string
	}{
		{rooms, newRoom("other"), "name", "no other room of the zone has"},
		{rooms, plus(newRoom("a"), "host", "other.example"), "", "stand on the same host"},
		{rooms, plus(newRoom("a"), "host", "suffix.example", "path", "/a", "cookie_suffix", "x"), "", "cookie_suffix"},
		{rooms, plus(newRoom("a"), "additional_routes", []any{tree{"host": "x.example"}}), "additional_routes", "cookie_suffix"},
		{rooms, plus(newRoom("a"), "additional_routes", []any{tree{"host": "a.example"}}, "cookie_suffix", "x"), "additional_routes[0]", "does not have yet"},
		{rooms, plus(newRoom("a"), "cookie_attributes", tree{"samesite": "none", "secure": "never"}), "cookie_attributes.samesite", "browsers drop"},
		{rooms, plus(newRoom("a"), "cookie_attributes", tree{"partitioned": true, "secure": "never"}), "cookie_attributes.partitioned", "browsers drop"},
		{rooms, plus(newRoom("a"), "custom_page_html", "{{#waitTime}}"), "custom_page_html", "line 1"},
		{rooms, plus(newRoom("a"), "frame_ancestors", []any{"none", "self"}), "frame_ancestors", "stands alone"},
		{events, plus(newEvent("e", 1), "total_active_users", 5), "new_users_per_minute", "both limits, or neither"},
		{events, plus(newEvent("e", 1), "shuffle_at_event_start", true), "shuffle_at_event_start", "prequeue_start_time"},
		{events, plus(newEvent("e", 1), "custom_page_html", "{{#x}}"), "custom_page_html", "line 1"},
		{other + "/rules", tree{"expression": "http.hots eq 1"}, "expression", "http.host"},
	} {
		m := b.refuses(400, "POST", tt.path, tt.body)[0]
		counts := regexp.MustCompile(`events\[|rules\[`).MatchString(m.Message) // what the request does not
		if m.Field != tt.field || !strings.Contains(m.Message, tt.says) || counts {
			t.Errorf("%v: it says %+v, want %s, %q", tt.body, m, tt.field, tt.says)
		}
	}
}
