package measurement

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTablesHavePlacesInPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const of = "one\n<!-- begin: written by make a -->\n| old |\n<!-- end -->\ntwo\n<!-- begin: written by make b -->\n| b |\n<!-- end -->\nthree\n"
	write(of)
	if err := writePage(path, "make a", "| new |\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if want := strings.Replace(of, "| old |", "| new |", 1); err != nil || string(got) != want {
		t.Errorf("the page became %q, %v; want %q", got, err, want)
	}
	for _, text := range []string{"", "<!-- begin: written by make b -->\n<!-- end -->\n", "<!-- begin: written by make a -->\n", "<!-- end -->\n<!-- begin: written by make a -->\n"} {
		write(text)
		if err := writePage(path, "make a", "| new |\n"); err == nil || !strings.Contains(err.Error(), "written by make a") {
			t.Errorf("a page %q without a place for the table: %v", text, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("the page %q became %q, %v", text, got, err)
		}
	}
}
