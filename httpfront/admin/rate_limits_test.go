package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/httpfront/admin"
	nodelimit "github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// TestARateLimit goes through its life, by id and by name.
func TestARateLimit(t *testing.T) {
	b := newBench(t)
	made := b.want("POST", rateLimits, plus(newRateLimit("logins"), "characteristics", []any{"ip.src"}, "content", "<p>no", "content_type", "text/html"))
	want := tree{
		"name": "logins", "description": "", "enabled": true, "expression": "true", "characteristics": []any{"ip.src"}, "ipv4_prefix": 32.0, "ipv6_prefix": 64.0,
		"period": 60.0, "requests_per_period": 5.0, "mitigation_timeout": 0.0, "counting_expression": "", "action": "block", "scope": "mesh", "status_code": 429.0,
		"content": "<p>no", "content_type": "text/html", "version": 1.0, "created_on": "2026-11-01T09:00:00Z",
	}
	same(t, "made", made, want)
	one := rateLimits + "/" + made["id"].(string)
	same(t, "by name", b.want("GET", rateLimits+"/logins", nil), want)
	same(t, "by id", b.want("GET", one, nil), want)
	got := b.want("PATCH", rateLimits+"/logins", tree{"requests_per_period": 7, "action": "queue", "mitigation_timeout": 600})
	want = plus(want, "requests_per_period", 7.0, "action", "queue", "mitigation_timeout", 600.0, "version", 2.0)
	same(t, "changed", got, want)
	same(t, "sent back", b.want("PATCH", one, b.want("GET", one, nil)), want)
	same(t, "replaced", b.want("PUT", one, newRateLimit("all")), tree{"name": "all", "characteristics": []any{}, "action": "block", "content": "", "content_type": "text/plain", "version": 3.0})

	b.want("POST", rateLimits, plus(newRateLimit("first"), "position", tree{"before": ""}))
	order := func() (names []string) {
		for _, l := range b.list("GET", rateLimits, nil) {
			names = append(names, l["name"].(string))
		}
		return names
	}
	if got := fmt.Sprint(order()); got != "[first all]" {
		t.Errorf("the order is %s", got)
	}
	b.want("PATCH", rateLimits+"/first", tree{"position": tree{"after": made["id"]}})
	if got := fmt.Sprint(order()); got != "[all first]" {
		t.Errorf("the order is %s", got)
	}
	if got := b.want("DELETE", one, nil); got["id"] != made["id"] {
		t.Errorf("got %v", got)
	}
	for _, method := range []string{"GET", "PUT", "PATCH", "DELETE"} {
		if m := b.refuses(404, method, one, newRateLimit("x"))[0]; m.Code != admin.CodeNoLimit {
			t.Errorf("%s: %v", method, m)
		}
	}
}

// What is wrong is told by the field here, whoever finds it.
func TestRateLimitsThatAreRefused(t *testing.T) {
	b := newBench(t)
	b.mesh.LimitChecks = func(r *nodelimit.Rule) error {
		if r.Expression == "nonsense" {
			return &room.FieldError{Field: "counting-expression", Problem: "line 1, column 1: nonsense"}
		}
		return nil
	}
	b.want("POST", rateLimits, newRateLimit("a"))
	for text, body := range map[string]tree{
		`name: "a" is not allowed: want a name that no other rate limit has`: newRateLimit("a"),
		"counting_expression: line 1, column 1: nonsense":                    plus(newRateLimit("b"), "expression", "nonsense"),
		`characteristics[1]: "ropeline.visitor_id" is not allowed`:           plus(newRateLimit("b"), "characteristics", []any{"ip.src", "ropeline.visitor_id"}),
		"requests_per_period: it is missing":                                 {"name": "b", "expression": "true", "period": 60},
		"did you mean period?":                                               plus(newRateLimit("b"), "perid", 1),
	} {
		if ms := fmt.Sprint(b.refuses(400, "POST", rateLimits, body)); !strings.Contains(ms, text) {
			t.Errorf("it says %s, want %s", ms, text)
		}
	}
	for i := 1; i < nodelimit.MaxRules; i++ {
		b.want("POST", rateLimits, newRateLimit(fmt.Sprint("r", i)))
	}
	if ms := fmt.Sprint(b.refuses(400, "POST", rateLimits, newRateLimit("more"))); !strings.Contains(ms, "delete one first") {
		t.Errorf("it says %s", ms)
	}
}
