//go:build unix

package main

import (
	"errors"
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

func TestEveryCellIsFilledIn(t *testing.T) {
	m := newMatrix()
	for _, c := range m.rows {
		for _, fe := range m.cols {
			m.put(c, fe, "site")
		}
	}
	lines := strings.Split(strings.TrimSpace(m.table()), "\n")
	if len(lines) != len(m.rows)+2 {
		t.Errorf("%d lines for %d cases", len(lines), len(m.rows))
	}
	for _, l := range lines[2:] {
		for i, cell := range strings.Split(strings.Trim(l, "|"), "|")[1:] {
			if !strings.HasPrefix(cell, " site") {
				t.Errorf("%s has nothing in: %s", m.cols[i].name, l)
			}
		}
	}
}
