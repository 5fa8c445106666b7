package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/transport"
)

func TestKeygenReplaces(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "a.key"), filepath.Join(dir, "b.key")
	run := func(args ...string) error {
		cmd := newKeygenCommand()
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		return cmd.Execute()
	}
	if err := errors.Join(run("--out", first), run("--replaces", first, "--out", second)); err != nil {
		t.Fatal(err)
	}
	a, _ := os.ReadFile(first)
	b, _ := os.ReadFile(second)
	was, err := transport.ParseSecrets(string(a))
	if err != nil {
		t.Fatal(err)
	}
	is, err := transport.ParseSecrets(string(b))
	if err != nil || len(is) != 2 || is[1] != was[0] || is[0] == was[0] {
		t.Errorf("got %d secrets, %v", len(is), err)
	}
	if err := run("--replaces", filepath.Join(dir, "none"), "--out", filepath.Join(dir, "c")); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("without a file: %v", err)
	}
}
