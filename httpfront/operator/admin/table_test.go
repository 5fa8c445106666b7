package admin

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/api.md")

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
	const path, begin, end = "../../../docs/api.md", "<!-- own: begin -->\n", "<!-- own: end -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	is, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("the page has no marks")
	}
	if is == b.String() {
		return
	}
	if !*update {
		t.Fatalf("the table is not as the fields are; -update writes it:\n%s", b.String())
	}
	if err := os.WriteFile(path, []byte(before+begin+b.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
