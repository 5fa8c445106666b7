package main

import (
	"reflect"
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
		"limit-memory: 1KiB":                                                                  "from 1MiB to 64GiB",
	} {
		_, err := parse(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n\tgot %v, want %q in it", text, err, want)
		} else if !strings.Contains(err.Error(), ":1: ") {
			t.Errorf("%s\n\tthe mistake has no line: %v", text, err)
		}
	}
}
