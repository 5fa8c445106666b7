package page

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestDocsListTheVariables: docs/pages.md has the table that templates and JSON are
// made from.
func TestDocsListTheVariables(t *testing.T) {
	const path, begin, end = "../../docs/pages.md", "<!-- variables -->\n", "<!-- end of variables -->\n"
	doc := must(os.ReadFile(path))
	before, rest, ok := strings.Cut(string(doc), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s lacks %q or %q", path, begin, end)
	}
	var table bytes.Buffer
	own := true
	for v := range Variables() {
		if v.Own != own {
			fmt.Fprint(&table, "\n| name | type | meaning |\n|---|---|---|\n")
			own = v.Own
		}
		only := ""
		if v.TemplateOnly {
			only = "; in templates only"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s%s |\n", v.Name, v.Type, v.Meaning, only)
	}
	compare(t, path, []byte(before+begin+table.String()+"\n"+end+after))
}
