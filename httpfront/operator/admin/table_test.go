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

// TestNumbersOfJSON: JSON has several ways to write one.
func TestNumbersOfJSON(t *testing.T) {
	for text, want := range map[string]int{"5": 5, "5.0": 5, "50e-1": 5, "5.5": 0, "1e30": 0} {
		r, room := &reader{}, newRoom()
		for _, f := range roomFields() {
			if f.name == "total_active_users" {
				f.read(r, value{kind: kindNumber, text: text}, room, nil)
			}
		}
		if got := room.Settings.TotalActiveUsers; got != want || (len(r.mistakes) == 0) != (want > 0) {
			t.Errorf("%s is read as %d, with mistakes %v", text, got, r.mistakes)
		}
	}
}
