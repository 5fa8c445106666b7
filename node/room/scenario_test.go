package room

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/golden"
)

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
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.File(t, file, runScenario(t, string(text)))
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
