package admin_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/node/catalog"
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

	same(t, "sent back without characteristics", b.want("PATCH", one, b.want("GET", one, nil)), tree{"version": 3.0})

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
	b.want("PATCH", rateLimits+"/first", tree{"position": tree{"before": "all"}})
	if got := fmt.Sprint(order()); got != "[first all]" {
		t.Errorf("the order by name is %s", got)
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

func limitNames(all []tree) (names []string) {
	for _, l := range all {
		names = append(names, l["name"].(string))
	}
	return names
}

// TestRateLimitsAreReplaced as a whole: what is known by its id or name keeps its id.
func TestRateLimitsAreReplaced(t *testing.T) {
	b := newBench(t)
	all := b.list("PUT", rateLimits, []tree{newRateLimit("a"), newRateLimit("b"), newRateLimit("c")})
	if got := fmt.Sprint(limitNames(all)); got != "[a b c]" {
		t.Fatalf("they are %s", got)
	}
	edits := b.mesh.Edits()
	if again := b.list("PUT", rateLimits, all); !reflect.DeepEqual(again, all) || b.mesh.Edits() != edits {
		t.Errorf("sent back, they are %v", again)
	}
	if again := b.list("PUT", rateLimits, []tree{newRateLimit("a"), newRateLimit("b"), newRateLimit("c")}); !reflect.DeepEqual(again, all) || b.mesh.Edits() != edits {
		t.Errorf("sent without ids, they are %v", again)
	}
	// The second takes the name of the first by its id, so the first is known by nothing.
	got := b.list("PUT", rateLimits, []tree{newRateLimit("a2"), plus(newRateLimit("a"), "id", all[1]["id"], "action", "log"), plus(newRateLimit("x"), "id", strings.Repeat("0", 32))})
	if names := fmt.Sprint(limitNames(got)); names != "[a2 a x]" || got[1]["id"] != all[1]["id"] || got[1]["version"] != 2.0 || got[0]["version"] != 1.0 || got[2]["id"] == strings.Repeat("0", 32) {
		t.Errorf("they are %v", got)
	}
	for _, wrong := range []struct {
		body  any
		field string
	}{
		{tree{}, "the body"},
		{[]any{1}, "rate_limits[0]"},
		{[]tree{newRateLimit("y"), {"name": "z", "period": 1, "requests_per_period": 1}}, "rate_limits[1].expression"},
		{[]tree{newRateLimit("y"), plus(newRateLimit("z"), "period", 0)}, "rate_limits[1].period"},
		{[]tree{plus(newRateLimit("y"), "position", tree{"index": 1})}, "rate_limits[0].position"},
		{[]tree{got[1], got[1]}, "rate_limits[1].id"},
		{[]tree{newRateLimit("y"), newRateLimit("y")}, "rate_limits[0].name"},
		{[]tree{newRateLimit("y"), plus(newRateLimit("z"), "characteristics", []any{"ip.src", "ip.src"})}, "rate_limits[1].characteristics[1]"},
	} {
		if m := b.refuses(400, "PUT", rateLimits, wrong.body)[0]; m.Field != wrong.field {
			t.Errorf("%v: %v", wrong.body, m)
		}
	}
	if ms := b.refuses(400, "PUT", rateLimits, []any{1, 2}); len(ms) != 2 {
		t.Errorf("of two that are none it says %v", ms)
	}
	var many []tree
	for i := range nodelimit.MaxRules + 1 {
		many = append(many, newRateLimit(fmt.Sprint("r", i)))
	}
	if ms := b.refuses(400, "PUT", rateLimits, many); len(ms) != 1 || !strings.Contains(ms[0].Message, "there would be 101") {
		t.Errorf("of too many it says %v", ms)
	}
	if got := fmt.Sprint(limitNames(b.list("GET", rateLimits, nil))); got != "[a2 a x]" {
		t.Errorf("after what was refused they are %s", got)
	}
	b.list("PUT", rateLimits, many[1:])
	if none := b.list("PUT", rateLimits, []tree{}); len(none) != 0 {
		t.Errorf("there are %v", none)
	}
}

// TestNamesOfRateLimits: no other may have it, wherever it stands in the list.
func TestNamesOfRateLimits(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"a", "b", "c"} {
		b.want("POST", rateLimits, newRateLimit(name))
	}
	for what, refused := range map[string][]mistake{
		"made before it":    b.refuses(400, "POST", rateLimits, plus(newRateLimit("b"), "position", tree{"index": 1})),
		"made behind it":    b.refuses(400, "POST", rateLimits, newRateLimit("b")),
		"renamed before it": b.refuses(400, "PATCH", rateLimits+"/a", tree{"name": "b"}),
		"renamed behind it": b.refuses(400, "PATCH", rateLimits+"/c", tree{"name": "b"}),
		"replaced":          b.refuses(400, "PUT", rateLimits+"/a", newRateLimit("b")),
	} {
		if len(refused) != 1 || refused[0].Field != "name" || !strings.Contains(refused[0].Allowed, "no other rate limit") {
			t.Errorf("%s: it says %v", what, refused)
		}
	}
	if got := fmt.Sprint(limitNames(b.list("GET", rateLimits, nil))); got != "[a b c]" {
		t.Errorf("they are %s", got)
	}
}

// TestARateLimitThatIsWrongAlready, since two nodes made one of the name or a node has other
// lists, can be changed all the same, but not made worse.
func TestARateLimitThatIsWrongAlready(t *testing.T) {
	b := newBench(t)
	one := b.want("POST", rateLimits, newRateLimit("a"))
	err := b.mesh.Edit(t.Context(), func(c *catalog.Catalog) ([]catalog.Write, error) {
		all := c.RateLimits()
		other := all[0].Clone()
		other.ID = nodelimit.ID{1}
		return catalog.LimitWrites(all, append(all, other)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.mesh.LimitChecks = func(*nodelimit.Rule) error {
		return &room.FieldError{Field: "expression", Problem: "there is no list $office"}
	}
	if m := b.refuses(409, "GET", rateLimits+"/a", nil)[0]; m.Code != admin.CodeSeveral || !strings.Contains(m.Message, one["id"].(string)) {
		t.Errorf("by the name of two it says %v", m)
	}
	for _, id := range []string{one["id"].(string), nodelimit.ID{1}.String()} {
		if got := b.want("PATCH", rateLimits+"/"+id, tree{"enabled": false}); got["enabled"] != false {
			t.Errorf("got %v", got)
		}
		if ms := b.refuses(400, "PATCH", rateLimits+"/"+id, tree{"period": 0}); len(ms) != 1 || ms[0].Field != "period" {
			t.Errorf("it says %v", ms)
		}
	}
	if ms := b.refuses(400, "POST", rateLimits, newRateLimit("a")); len(ms) != 2 {
		t.Errorf("of a new one it says %v", ms)
	}
}

// TestARateLimitWhoseContentHasNotArrived would lose it.
func TestARateLimitWhoseContentHasNotArrived(t *testing.T) {
	b := newBench(t)
	made := b.want("POST", rateLimits, plus(newRateLimit("a"), "content", "<p>no"))
	b.mesh.Forget(func(key string) bool { return strings.HasPrefix(key, "text/") })
	for method, path := range map[string]string{"PATCH": rateLimits + "/a", "PUT": rateLimits + "/a"} {
		if m := b.refuses(409, method, path, newRateLimit("a"))[0]; !strings.Contains(m.Message, "has not arrived") {
			t.Errorf("%s: %v", method, m)
		}
	}
	if m := b.refuses(409, "PUT", rateLimits, []tree{made})[0]; !strings.Contains(m.Message, "has not arrived") {
		t.Errorf("the whole list: %v", m)
	}
	b.want("DELETE", rateLimits+"/a", nil)
}
