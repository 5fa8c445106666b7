package manage

import (
	"encoding/csv"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/node/history"
)

// TestAnalytics asks for the last hour, and for a part of it in steps.
func TestAnalytics(t *testing.T) {
	b := newBench(t)
	const path = "/api/v1/rooms/shop/analytics"
	got := b.wants("GET", path, "", 200, `"room":"`+b.room+`"`, `"step_seconds":60,`, `"missing":["three","two"]`)
	if !b.mesh.to.Equal(begin) || !b.mesh.from.Equal(begin.Add(-time.Hour)) {
		t.Errorf("asked for %v to %v", b.mesh.from, b.mesh.to)
	}
	points := got["points"].([]any)
	first := points[0].(map[string]any)
	if len(points) != 2 || first["time"] != "2026-07-01T17:00:00Z" || first["active_users_avg"] != 7.0 || first["new_users"] != 4.0 ||
		first["nodes"] != 2.0 || first["time_on_site_p50_seconds"] != nil {
		t.Errorf("points are %v", points)
	}
	if wait, _ := first["wait_p50_seconds"].(float64); wait < 58 || wait > 62 {
		t.Errorf("the median wait is %v, want a minute", wait)
	}
	got = b.wants("GET", path+"?from=2026-07-01t16:00:00z&to=2026-07-01T17:30:00Z&step=5m", "", 200, `"minutes":2,`, `"new_users":5,`)
	if len(got["points"].([]any)) != 1 || b.mesh.to.Sub(b.mesh.from) != 90*time.Minute {
		t.Errorf("in steps of 5 minutes: %v", got)
	}
}

// TestAnalyticsAsATable: the same figures in the same order.
func TestAnalyticsAsATable(t *testing.T) {
	b := newBench(t)
	resp := b.api.Do(t.Context(), admin.Request{Method: "GET", Path: "/api/v1/rooms/shop/analytics", Query: url.Values{"format": {"csv"}}})
	rows, err := csv.NewReader(strings.NewReader(string(resp.Body))).ReadAll()
	if err != nil || resp.Status != 200 || !strings.HasPrefix(resp.ContentType, "text/csv") || resp.Header[MissingField] != "three, two" {
		t.Fatalf("%d %s %v: %s, %v", resp.Status, resp.ContentType, resp.Header, resp.Body, err)
	}
	if len(rows) != 3 || len(rows[0]) != len(history.Columns())+1 || rows[0][3] != "active_users_avg" || rows[1][3] != "7" || rows[2][3] != "" {
		t.Errorf("rows are %q", rows)
	}
}

// TestAnalyticsThatAreRefused name the parameter, its value and what is allowed.
func TestAnalyticsThatAreRefused(t *testing.T) {
	b := newBench(t)
	const path = "/api/v1/rooms/shop/analytics"
	for _, c := range []struct{ query, says string }{
		{"from=yesterday", `from: \"yesterday\" is not allowed: want a time in RFC 3339`},
		{"to=1", `to: \"1\" is not allowed: want a time in RFC 3339`},
		{"from=2026-06-30T17:59:00Z", `from: \"2026-06-30T17:59:00Z\" is not allowed: want a time from 1m to 24h before to, which is 2026-07-01T18:00:00Z`},
		{"from=2026-07-01T18:00:00Z", "want a time from 1m to 24h before to"},
		{"from=2026-07-01T18:01:00Z", "want a time from 1m to 24h before to"},
		{"step=90s", `step: \"90s\" is not allowed: want whole minutes from 1m to 24h`},
		{"step=0", "want whole minutes"},
		{"step=-1m", "want whole minutes"},
		{"step=25h", "want whole minutes"},
		{"step=x", "want whole minutes"},
		{"format=xml", `format: \"xml\" is not allowed: want json or csv`},
		{"since=1", "since: the query has no such parameter here"},
		{"step=1m&step=2m", "it stands 2 times"},
	} {
		b.wants("GET", path+"?"+c.query, "", 400, c.says)
	}
	b.wants("GET", "/api/v1/rooms/none/analytics", "", 404)
	for _, ok := range []string{"from=2026-06-30T18:00:00Z", "from=2026-07-01T17:59:00Z", "step=24h", "step=1440m", "format=json"} {
		b.wants("GET", path+"?"+ok, "", 200)
	}
	b.mesh.err = errors.New("the node is not running")
	b.wants("GET", path, "", 503)
}
