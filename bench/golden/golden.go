// Package golden holds files to what tests find. Run with -update, tests write these files
// instead, and what has changed can be looked at before it is committed.
package golden

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the files that tests hold to what they find")

// File holds a file to what a test has found.
func File(t testing.TB, path, found string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(found), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if what := difference(string(text), found); what != "" {
		t.Errorf("%s: %s; if that is right, the test writes it with -update", path, what)
	}
}

// Part is File for what stands between two marks in a page.
func Part(t testing.TB, path, begin, end, found string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s lacks %q or %q", path, begin, end)
	}
	File(t, path, before+begin+found+end+after)
}

// difference tells of the first line of found that is not that of was; "" if all are.
func difference(was, found string) string {
	old, lines := strings.Split(was, "\n"), strings.Split(found, "\n")
	for i, line := range lines {
		switch {
		case i >= len(old):
			return fmt.Sprintf("line %d is now %q, and there was none", i+1, line)
		case line != old[i]:
			return fmt.Sprintf("line %d is now %q, and was %q", i+1, line, old[i])
		}
	}
	if len(lines) < len(old) {
		return fmt.Sprintf("there are now %d lines, and were %d", len(lines), len(old))
	}
	return ""
}
