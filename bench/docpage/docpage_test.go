package docpage

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/machine"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const of = "one\n<!-- begin: written by make a -->\n| old |\n<!-- end -->\ntwo\n<!-- begin: written by make b -->\n| b |\n<!-- end -->\nthree\n"
	write(of)
	if err := Write(nil, path, "make a", "| new |\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if want := strings.Replace(of, "| old |", "| new |", 1); err != nil || string(got) != want {
		t.Errorf("the page became %q, %v; want %q", got, err, want)
	}
	for _, text := range []string{"", "<!-- begin: written by make b -->\n<!-- end -->\n", "<!-- begin: written by make a -->\n", "<!-- end -->\n<!-- begin: written by make a -->\n"} {
		write(text)
		if err := Write(nil, path, "make a", "| new |\n"); err == nil || !strings.Contains(err.Error(), "written by make a") {
			t.Errorf("a page %q without a place for the table: %v", text, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("the page %q became %q, %v", text, got, err)
		}
	}
	var out strings.Builder
	if err := Write(&out, "", "make a", "| new |\n"); err != nil || out.String() != "| new |\n" {
		t.Errorf("without a page: %q, %v", out.String(), err)
	}
}

func TestWriteResult(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "page.md")
	if err := os.WriteFile(path, []byte("<!-- begin: written by make a -->\n<!-- end -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := Result{Maker: "make a", Made: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Machine: machine.Machine{Cores: 2, Go: "go1.26"}, Figures: []int{1, 2}}
	if err := WriteResult(nil, path, "all", "| table |\n", r); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	want := "<!-- begin: written by make a -->\n| table |\n\n2 cores, go1.26. Made on 2 January 2026 by `make a`; all figures are in [all.json](bench/all.json).\n<!-- end -->\n"
	if err != nil || string(got) != want {
		t.Errorf("the page became %q, %v; want %q", got, err, want)
	}
	text, err := os.ReadFile(filepath.Join(dir, "bench", "all.json"))
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Command string
		Figures []int
	}
	if err := json.Unmarshal(text, &back); err != nil || back.Command != "make a" || !slices.Equal(back.Figures, []int{1, 2}) {
		t.Errorf("figures: %s, %v", text, err)
	}
	var out strings.Builder
	if err := WriteResult(&out, "", "all", "| table |\n", r); err != nil || out.String() != "| table |\n" {
		t.Errorf("without a page: %q, %v", out.String(), err)
	}
}
