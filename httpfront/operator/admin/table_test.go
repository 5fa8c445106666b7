package admin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/golden"
)

// TestThePageHasOurFields holds the table of what the dialect does not have; -update writes it.
func TestThePageHasOurFields(t *testing.T) {
	var b strings.Builder
	b.WriteString("| field | default | allowed |\n|---|---|---|\n")
	blank := newRoom()
	for _, f := range roomFields() {
		if f.ours {
			fmt.Fprintf(&b, "| `%s` | %v | %s |\n", f.name, f.show(blank, time.Time{}), f.allowed)
		}
	}
	golden.Part(t, "../../../docs/api.md", "<!-- own: begin -->\n", "<!-- own: end -->\n", b.String())
}
