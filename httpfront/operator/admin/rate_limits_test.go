package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/node/catalog"
	nodelimit "github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// wantLimits fails where the names of the rate limits are others, or in another order.
func (b *bench) wantLimits(what, names string) {
	b.Helper()
	is(b.T, what, limitNames(b.list("GET", rateLimits, nil)), names)
}

func limitNames(all []tree) string {
	var names []string
	for _, l := range all {
		names = append(names, l["name"].(string))
	}
	return strings.Join(names, " ")
}

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
	want = tree{"name": "all", "characteristics": []any{}, "action": "block", "content": "", "content_type": "text/plain", "version": 3.0}
	same(t, "replaced", b.want("PUT", one, newRateLimit("all")), want)
	same(t, "sent back without characteristics", b.want("PATCH", one, b.want("GET", one, nil)), tree{"version": 3.0})

	b.want("POST", rateLimits, plus(newRateLimit("first"), "position", tree{"before": ""}))
	b.wantLimits("one is made before all", "first all")
	b.want("PATCH", rateLimits+"/first", tree{"position": tree{"after": made["id"]}})
	b.wantLimits("it is moved behind an id", "all first")
	b.want("PATCH", rateLimits+"/first", tree{"position": tree{"before": "all"}})
	b.wantLimits("it is moved before a name", "first all")
	is(t, "deleted", b.want("DELETE", one, nil)["id"], made["id"])
	b.wantGone(one, newRateLimit("x"), admin.CodeNoLimit, "GET", "PUT", "PATCH", "DELETE")
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
	b.wantRefused(400, "POST", rateLimits, newRateLimit("more"), mistake{Message: "delete one first"})
}

// TestRateLimitsAreReplaced as a whole: what is known by its name keeps its id, too.
func TestRateLimitsAreReplaced(t *testing.T) {
	b := newBench(t)
	abc := []tree{newRateLimit("a"), newRateLimit("b"), newRateLimit("c")}
	all := b.list("PUT", rateLimits, abc)
	// The second takes the name of the first by its id, so the first is known by nothing.
	got := b.list("PUT", rateLimits, []tree{newRateLimit("a2"), plus(newRateLimit("a"), "id", all[1]["id"])})
	is(t, "renamed", limitNames(got), "a2 a")
	is(t, "the id of what was renamed", got[1]["id"], all[1]["id"])
	is(t, "the version of what is new", got[0]["version"], 1.0)
	for _, wrong := range []struct {
		second tree // beside y
		field  string
	}{
		{plus(newRateLimit("z"), "period", 0), "rate_limits[1].period"},
		{newRateLimit("y"), "rate_limits[0].name"},
		{plus(newRateLimit("z"), "characteristics", []any{"ip.src", "ip.src"}), "rate_limits[1].characteristics[1]"},
	} {
		b.wantRefused(400, "PUT", rateLimits, []tree{newRateLimit("y"), wrong.second}, mistake{Field: wrong.field})
	}
	var many []tree
	for i := range nodelimit.MaxRules + 1 {
		many = append(many, newRateLimit(fmt.Sprint("r", i)))
	}
	if ms := b.refuses(400, "PUT", rateLimits, many); len(ms) != 1 || !strings.Contains(ms[0].Message, "there would be 101") {
		t.Errorf("of too many it says %v", ms)
	}
	b.wantLimits("after what was refused", "a2 a")
	b.list("PUT", rateLimits, many[1:])
}

// TestNamesOfRateLimits: no other may have it, wherever it stands in the list.
func TestNamesOfRateLimits(t *testing.T) {
	b := newBench(t)
	b.list("PUT", rateLimits, []tree{newRateLimit("a"), newRateLimit("b"), newRateLimit("c")})
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
	b.wantLimits("after what was refused", "a b c")
}

// TestARateLimitThatIsWrongAlready, since two nodes made one of the name or a node has other
// lists, can be changed all the same, but not made worse.
func TestARateLimitThatIsWrongAlready(t *testing.T) {
	b := newBench(t)
	one := b.want("POST", rateLimits, newRateLimit("a"))
	must.Do(b.mesh.Edit(t.Context(), func(c *catalog.Catalog) ([]catalog.Write, error) {
		all := c.RateLimits()
		other := all[0].Clone()
		other.ID = nodelimit.ID{1}
		return c.LimitWrites(all, append(all, other)), nil
	}))
	b.mesh.LimitChecks = func(*nodelimit.Rule) error {
		return &room.FieldError{Field: "expression", Problem: "there is no list $office"}
	}
	b.wantRefused(409, "GET", rateLimits+"/a", nil, mistake{Code: admin.CodeSeveral, Message: one["id"].(string)})
	for _, id := range []string{one["id"].(string), nodelimit.ID{1}.String()} {
		same(t, "changed", b.want("PATCH", rateLimits+"/"+id, tree{"enabled": false}), tree{"enabled": false})
		if ms := b.refuses(400, "PATCH", rateLimits+"/"+id, tree{"period": 0}); len(ms) != 1 || ms[0].Field != "period" {
			t.Errorf("it says %v", ms)
		}
	}
	is(t, "what it says of a new one", len(b.refuses(400, "POST", rateLimits, newRateLimit("a"))), 2)
}

// TestARateLimitWhoseContentHasNotArrived would lose it.
func TestARateLimitWhoseContentHasNotArrived(t *testing.T) {
	b := newBench(t)
	made := b.want("POST", rateLimits, plus(newRateLimit("a"), "content", "<p>no"))
	b.mesh.Forget(isText)
	late := mistake{Message: "has not arrived"}
	b.wantRefused(409, "PATCH", rateLimits+"/a", newRateLimit("a"), late)
	b.wantRefused(409, "PUT", rateLimits+"/a", newRateLimit("a"), late)
	b.wantRefused(409, "PUT", rateLimits, []tree{made}, late)
	b.want("DELETE", rateLimits+"/a", nil)
}
