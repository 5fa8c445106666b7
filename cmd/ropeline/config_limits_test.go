package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/limit"
)

func TestRateLimitsOfAFile(t *testing.T) {
	cfg, err := parseBeside(t, map[string]string{"no.html": "<p>no</p>"}, `
limit-memory: 128MiB
lists:
  office: {addresses: [192.0.2.0/24]}
rate-limits:
  - name: logins
    description: failed ones
    expression: http.request.uri.path eq "/login" and not ip.src in $office
    characteristics: [ip.src, 'http.request.headers["a,b"]']
    ipv4-prefix: 24
    period: 1m
    requests-per-period: 5
    mitigation-timeout: 10m
    counting-expression: http.response.code eq 401
    action: block
    scope: site
    status-code: 403
    content-file: no.html
    content-type: text/html
  - name: all
    expression: "true"
    period: 10s
    requests_per_period: 1000
    enabled: false
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []limit.Rule{
		{
			Name: "logins", Description: "failed ones", Expression: `http.request.uri.path eq "/login" and not ip.src in $office`,
			Characteristics: []string{"ip.src", `http.request.headers["a,b"]`}, IPv4Prefix: 24, IPv6Prefix: 64, Period: time.Minute,
			RequestsPerPeriod: 5, MitigationTimeout: 10 * time.Minute, CountingExpression: "http.response.code eq 401",
			Action: limit.Block, Scope: limit.Site, Response: limit.Response{StatusCode: 403, Content: "<p>no</p>", ContentType: "text/html"},
		},
		limit.Rule{Name: "all", Expression: "true", Period: 10 * time.Second, RequestsPerPeriod: 1000, Disabled: true}.WithDefaults(),
	}
	if !reflect.DeepEqual(cfg.Limits.Rules, want) || cfg.Limits.Memory != 128<<20 {
		t.Errorf("got %+v", cfg.Limits)
	}
}

func TestRateLimitsThatAreRefused(t *testing.T) {
	const good = "name: a, expression: 'true', period: 1m, requests-per-period: 5"
	for text, want := range map[string]string{
		"rate-limits: 5":                                                                      "rate-limits: a list of rate limits is wanted",
		"rate-limits: [{" + good + ", nam: b}]":                                               `did you mean "name"`,
		"rate-limits: [{name: a, expression: 'true', period: 1m}]":                            `every rate limit needs a line "requests-per-period:"`,
		"rate-limits: [{" + good + "}, {" + good + "}]":                                       "a name that no other rate limit has",
		"rate-limits: [{" + good + ", action: challenge}]":                                    "block, queue",
		"rate-limits: [{name: a, expression: 'true', period: 500ms, requests-per-period: 5}]": "period",
		"rate-limits: [{" + good + ", status-code: 200}]":                                     "400 to 499",
		"rate-limits: [{" + good + ", counting-expression: http.response.cod}]":               "did you mean http.response.code?",
		"rate-limits: [{" + good + ", characteristics: [http.hots]}]":                         "did you mean http.host?",
		"rate-limits: [{" + good + ", content: a, content-file: b}]":                          "b",
		// of memory
		"limit-memory: 1KiB": "from 1MiB to 64GiB",
	} {
		_, err := parse(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n\tgot %v, want %q in it", text, err, want)
		} else if !strings.Contains(err.Error(), ":1:") {
			t.Errorf("%s\n\tthe mistake has no line: %v", text, err)
		}
	}
}

// What a setting may be at its limits, and not beyond them.
func TestRateLimitsOfAFileAtTheirLimits(t *testing.T) {
	quoted := func(n int) string { return strconv.Quote(strings.Repeat("x", n)) }
	header := func(n int) string { // a characteristic of n bytes
		return `['http.request.headers["` + strings.Repeat("x", n-len(`http.request.headers[""]`)) + `"]']`
	}
	for name, c := range map[string]struct{ good, bad []string }{
		"name":                {[]string{quoted(1), quoted(64)}, []string{`""`, quoted(65), `"a b"`}},
		"description":         {[]string{`""`, quoted(500)}, []string{quoted(501)}},
		"enabled":             {[]string{"true", "false"}, []string{"1"}},
		"expression":          {[]string{"'true'"}, []string{`""`, quoted(4097), "http.response.code eq 1"}},
		"characteristics":     {[]string{"[]", "[ip.src, http.host]", header(256)}, []string{`[""]`, "[ip.src, ip.src]", header(257), "[ip.src, ropeline.visitor_id]"}},
		"ipv4-prefix":         {[]string{"8", "32"}, []string{"7", "33"}},
		"ipv6-prefix":         {[]string{"16", "128"}, []string{"15", "129"}},
		"period":              {[]string{"1s", "24h"}, []string{"0s", "999ms", "1500ms", "24h1s"}},
		"requests-per-period": {[]string{"1", "1000000000"}, []string{"0", "1000000001"}},
		"mitigation-timeout":  {[]string{"0s", "24h"}, []string{"-1s", "1500ms", "24h1s"}},
		"counting-expression": {[]string{`""`, "http.response.code eq 401"}, []string{quoted(4097), "'('"}},
		"action":              {[]string{"block", "queue", "log"}, []string{"challenge", `""`}},
		"scope":               {[]string{"mesh", "site"}, []string{"node", `""`}},
		"status-code":         {[]string{"400", "499"}, []string{"399", "500"}},
		"content":             {[]string{`""`, quoted(30 << 10)}, []string{quoted(30<<10 + 1)}},
		"content-type":        {limit.ContentTypes, []string{"image/png", `""`}},
	} {
		with := func(value string) (config, error) {
			all := map[string]string{"name": "a", "expression": "'true'", "period": "1m", "requests-per-period": "5"}
			all[name] = value
			var parts []string
			for _, key := range slices.Sorted(maps.Keys(all)) {
				parts = append(parts, "    "+key+": "+all[key])
			}
			return parse(t, "rate-limits:\n  - \n"+strings.Join(parts, "\n")+"\n")
		}
		for _, v := range c.good {
			if cfg, err := with(v); err != nil || len(cfg.Limits.Rules) != 1 {
				t.Errorf("%s: %.80s: %v", name, v, err)
			}
		}
		for _, v := range c.bad {
			if _, err := with(v); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %.80s is refused by %.300v", name, v, err)
			}
		}
	}
	for v, ok := range map[string]bool{"1MiB": true, "64GiB": true, "1048575": false, "65GiB": false, "0": false, "many": false} {
		if _, err := parse(t, "limit-memory: "+v); (err == nil) != ok {
			t.Errorf("limit-memory %s: %v", v, err)
		}
	}
	var many strings.Builder
	for i := range limit.MaxRules + 1 {
		fmt.Fprintf(&many, "- {name: r%d, expression: 'true', period: 1m, requests-per-period: 5}\n", i)
	}
	if _, err := parse(t, "rate-limits:\n"+many.String()); err == nil || !strings.Contains(err.Error(), "at most 100 rules") {
		t.Errorf("of too many it says %v", err)
	}
}
