//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProxies runs all cases with every proxy that is here.
func TestProxies(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real proxies for a quarter of a minute")
	}
	o := options{binary: filepath.Join(t.TempDir(), "ropeline"), caddy: "caddy", examples: "../../docs/examples"}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", o.binary, "../../cmd/ropeline").CombinedOutput(); err != nil {
		t.Fatalf("build ropeline: %v\n%s", err, out)
	}
	for _, fe := range frontEnds() {
		t.Run(fe.name, func(t *testing.T) {
			t.Parallel()
			err := runFrontEnd(t.Context(), o, fe, newMatrix())
			if errors.Is(err, errNotHere) {
				t.Skip(err)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNoCellIsUnexplained holds that whatever differs from the rest of its row has a note.
func TestNoCellIsUnexplained(t *testing.T) {
	text, err := os.ReadFile("../../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), markBegin)
	table, _, ends := strings.Cut(rest, "\n\n")
	if !ok || !ends {
		t.Fatal("docs/verdicts.md has no table")
	}
	lines := strings.Split(table, "\n")
	if want := len(newMatrix().rows) + 2; len(lines) != want {
		t.Fatalf("the table has %d lines, want %d: make conformance", len(lines), want)
	}
	for i, l := range lines[2:] {
		c := newMatrix().rows[i]
		cells := strings.Split(strings.Trim(l, "|"), "|")[1:]
		if len(cells) != len(frontEnds()) {
			t.Fatalf("%d cells for %d proxies in: %s", len(cells), len(frontEnds()), l)
		}
		counts := map[string]int{}
		for _, cell := range cells {
			says, _, _ := strings.Cut(strings.TrimSpace(cell), " <sup>")
			counts[says]++
		}
		for k, cell := range cells {
			says, _, noted := strings.Cut(strings.TrimSpace(cell), " <sup>")
			if says == "" || says == "broken" || counts[says]*2 < len(cells) && !noted {
				t.Errorf("%s, %s: %q is not explained", c.what, frontEnds()[k].name, cell)
			}
		}
	}
}
