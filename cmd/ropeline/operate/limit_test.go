package operate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestStatusShowsLimits: what counts, what does not, and where memory is too small; nothing
// where there is no limit.
func TestStatusShowsLimits(t *testing.T) {
	got, err := meshTables(json.RawMessage(`{"rooms": [], "limits": [
		{"name": "logins", "state": "counts", "scope": "mesh", "action": "block", "requests_per_period": 5, "period": 60, "keys": {"most": 30, "sum": 77}, "limited": {"most": 2, "sum": 4}, "most": 15},
		{"name": "twice", "state": "left out", "scope": "site", "action": "log", "requests_per_period": 9, "period": 1, "keys": {"most": 0, "sum": 0}, "limited": {"most": 0, "sum": 0}, "most": 0},
		{"name": "brought", "state": "counts", "scope": "mesh", "keys": {"most": 8, "sum": 8}, "limited": {"most": 0, "sum": 0}, "most": 0}],
		"nodes": [{"name": "a", "state": "alive", "limits": {"replaced_lately": 12}}, {"name": "b", "state": "alive", "limits": {"replaced_lately": 0}},
			{"name": "c", "state": "failed", "limits": {"replaced_lately": 12}}, {"name": "d", "state": "alive"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(got) {
		rows = append(rows, strings.Join(strings.FieldsFunc(line, func(r rune) bool { return r == '│' || r == ' ' || r == '\n' }), " "))
	}
	for _, want := range []string{
		"logins 5 in 60 s block 30 2 15",
		"twice 9 in 1 s left out – – –",
		"brought ? 8 0 0",
		"node a forgot 12 clients of rate limits too early, within five minutes: raise its limit-memory",
	} {
		if !slices.Contains(rows, want) {
			t.Errorf("no line %q in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "forgot"); n != 1 {
		t.Errorf("%d nodes forgot, want 1:\n%s", n, got)
	}
	if got, err = meshTables(json.RawMessage(`{"rooms": [], "nodes": [], "limits": []}`)); err != nil || strings.Contains(got, "Limit") {
		t.Errorf("without limits: %v\n%s", err, got)
	}
}
