package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// asCommand, set in the environment, makes the test binary the command itself, for the
// processes that it starts.
const asCommand = "ROPELINE_BENCH_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestDocsShowSimulationsThatWork has each simulation that a page shows begin.
func TestDocsShowSimulationsThatWork(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	plots := t.TempDir()
	t.Chdir("../..")
	found := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(strings.TrimPrefix(page, "../../"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
			words := strings.Fields(strings.TrimPrefix(line, "./"))
			if len(words) < 2 || words[0] != "ropeline-bench" || words[1] != "simulate" {
				continue
			}
			found++
			if i := slices.Index(words, "--plot"); i >= 0 {
				words[i+1] = plots
			}
			stopped, stop := context.WithCancel(t.Context())
			stop()
			cmd := newRootCommand()
			cmd.SetOut(io.Discard)
			cmd.SetArgs(words[1:])
			if err := cmd.ExecuteContext(stopped); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %s\nends with: %v", page, line, err)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d simulations were found", found)
	}
}
