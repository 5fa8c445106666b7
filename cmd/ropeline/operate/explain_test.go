package operate

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestExplainedLimits says at the end what becomes of who is limited.
func TestExplainedLimits(t *testing.T) {
	const logs = `{"name": "logs", "action": "log", "limited": true}, `
	for request, want := range map[string]string{
		`"passes": true`: "No room is there: nobody waits.\nIt would reach the site.",
		`"passes": true, "limits": [{"name": "a", "action": "block", "remaining": 3}]`:                      "It would reach the site.",
		`"limits": [` + logs + `{"name": "a", "action": "block", "limited": true}]`:                         "It would be blocked by the rate limit a.",
		`"limits": [` + logs + `{"name": "a", "action": "queue", "limited": true}]`:                         "It would be blocked by the rate limit a.",
		`"room": "shop", "limits": [` + logs + `{"name": "a", "action": "queue", "limited": true}]`:         "It would get the page of the room, for the rate limit a.",
		`"room": "shop", "limits": [{"name": "a", "action": "block", "limited": true}]`:                     "It would be blocked by the rate limit a.",
		`"room": "shop", "limits": [` + logs + `{"name": "a", "action": "block", "limited": false}]`:        "It would wait.",
		`"room": "shop", "dry_run": true, "passes": true, "limits": [{"action": "queue", "limited": true}]`: "It would reach the site.",
	} {
		got, err := explained(json.RawMessage(`{"request": {` + request + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(strings.TrimSpace(got), want) {
			t.Errorf("%s:\n%s\nwant %q at the end", request, got, want)
		}
	}
}
