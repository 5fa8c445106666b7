package operate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

// TestLiveViewsFit neither wrap nor scroll.
func TestLiveViewsFit(t *testing.T) {
	tall := strings.Repeat("│ Zürich │ 生命 │ a room with quite a name │\n", 30)
	for _, c := range []struct {
		width, height int
		lines         int
		says          string
	}{
		{0, 0, 32, "Zürich"}, {100, 100, 32, "Zürich"}, {20, 100, 32, "…"}, {80, 24, 23, "… 10 more lines"}, {80, 33, 32, "Zürich"}, {10, 4, 3, "… 30 more"}, {80, 1, 32, "Zürich"},
	} {
		got := fitted(tall, "12:00:00  Ctrl-C ends it", c.width, c.height)
		lines := strings.Split(strings.TrimSuffix(got, "\n\x1b[J"), "\n")
		if len(lines) != c.lines || !strings.Contains(got, c.says) || !strings.HasPrefix(got, "\x1b[H") {
			t.Errorf("%d × %d: %d lines, want %d with %q:\n%s", c.width, c.height, len(lines), c.lines, c.says, got)
		}
		for _, line := range lines {
			if w := text.StringWidthWithoutEscSequences(line); c.width > 0 && w > c.width {
				t.Errorf("%d × %d: a line of %d columns: %q", c.width, c.height, w, line)
			}
		}
	}
}

// TestStatusFitsATerminal has a mesh with names of some length on 80 columns.
func TestStatusFitsATerminal(t *testing.T) {
	const node = `{"node": "0af0718b13145fd798d595495e3b4a4c", "name": "north-1", "site": "frankfurt", "state": "alive", "ready": true, "store": "ok", "clock": "ok",
		"version": "v0.0.0-20261123154951-79ced7ff7453", "boot": 12, "leads": ["x"], "rights": {"held": {"places": 100000}, "in_use": 99999}, "rtts_ns": {"x": 12345678}}`
	got, err := meshTables(json.RawMessage(`{"rooms": [{"name": "shop", "zone": "default", "routes": [{"host": "shop.example", "path": "/"}], "active": 20, "waiting": 19,
		"total_active_users": 50, "admitted_per_minute": 3, "new_users_per_minute": 200, "wait_seconds": 75}], "nodes": [` + node + `], "limits": [{"name": "searches-with-a-key", "state": "counts", "scope": "mesh", "action": "block", "requests_per_period": 1000, "period": 3600,
		"keys": {"most": 1234567, "sum": 2345678}, "limited": {"most": 12, "sum": 20}, "delay_seconds": 1.24, "most": 11000}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(got) {
		if w := text.StringWidthWithoutEscSequences(strings.TrimSuffix(line, "\n")); w > 80 {
			t.Errorf("a line of %d columns:\n%s", w, got)
			break
		}
	}
}
