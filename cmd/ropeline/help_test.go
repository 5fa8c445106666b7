package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	cmd := newRootCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestHelpOfRunFitsAScreen of 40 lines, and shows all flags of a first start.
func TestHelpOfRunFitsAScreen(t *testing.T) {
	const lines, columns = 40, 120
	text := helpOf(t, "run", "--help")
	if n := strings.Count(text, "\n"); n > lines {
		t.Errorf("it has %d lines, want at most %d", n, lines)
	}
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > columns {
			t.Errorf("a line has %d characters, want at most %d: %s", n, columns, line)
		}
	}
	for _, name := range firstFlags {
		if !strings.Contains(text, "--"+name+" ") {
			t.Errorf("it has no --%s", name)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestHelpAllOfRunHasEveryFlag(t *testing.T) {
	text, short := helpOf(t, "run", "--help-all"), helpOf(t, "run", "--help")
	newRunCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && !strings.Contains(text, "--"+f.Name+" ") {
			t.Errorf("it has no --%s", f.Name)
		}
		if shown := strings.Contains(short, "      --"+f.Name+" "); shown != slices.Contains(firstFlags, f.Name) && f.Name != "help" {
			t.Errorf("--%s is in the short help: %v", f.Name, shown)
		}
	})
}
