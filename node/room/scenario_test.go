package room

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the answers in testdata/*.txt anew")

// TestScenarios runs testdata/*.txt. A file is text, and steps of the form
//
//	command key=value …
//	----
//	answer
//
// with an empty line behind each. State is carried from step to step.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScenario(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			wantLines, gotLines := strings.Split(string(want), "\n"), strings.Split(got, "\n")
			for i := range min(len(wantLines), len(gotLines)) {
				if wantLines[i] != gotLines[i] {
					t.Fatalf("line %d: got %q, want %q", i+1, gotLines[i], wantLines[i])
				}
			}
			if len(wantLines) != len(gotLines) {
				t.Fatalf("got %d lines, want %d", len(gotLines), len(wantLines))
			}
		})
	}
}

// runScenario returns the file with every answer replaced by the real one.
func runScenario(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	s := scenario{t: t}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		fmt.Fprintln(&out, lines[i])
		if i+1 >= len(lines) || lines[i+1] != "----" {
			continue
		}
		fmt.Fprintln(&out, "----")
		out.WriteString(s.step(strings.Fields(lines[i])))
		for i++; i+1 < len(lines) && lines[i+1] != ""; i++ {
		}
	}
	return out.String()
}
