//go:build unix

package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// matrix is what visitors saw, by case and proxy.
type matrix struct {
	rows []testCase
	cols []frontEnd

	mu    sync.Mutex        // guards the following
	cells map[string]string // by row and column
}

func newMatrix() *matrix {
	return &matrix{rows: append(cases(), openCases()...), cols: frontEnds(), cells: map[string]string{}}
}

func (m *matrix) put(c testCase, fe frontEnd, seen string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cells[c.id+" "+fe.name] = seen
}

// seenLocked is what visitors saw in a case.
func (m *matrix) seenLocked(c testCase, fe frontEnd) string {
	return cmp.Or(m.cells[c.id+" "+fe.name], broken)
}

// broken is what stands where something else came of a case than has to.
const broken = "broken"

// broken returns in how many cases something is broken.
func (m *matrix) broken(fe frontEnd) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.rows {
		if m.seenLocked(c, fe) == broken {
			n++
		}
	}
	return n
}

// table returns the matrix as markdown, with the notes that it needs.
func (m *matrix) table() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	var used []note
	mark := func(notes []note) string {
		var marks []string
		for _, n := range notes {
			if !slices.Contains(used, n) {
				used = append(used, n)
			}
			marks = append(marks, fmt.Sprint(slices.Index(used, n)+1))
		}
		if marks == nil {
			return ""
		}
		return " <sup>" + strings.Join(marks, ", ") + "</sup>"
	}
	b.WriteString("| the visitor is |")
	for _, fe := range m.cols {
		fmt.Fprintf(&b, " %s%s |", fe.name, mark(columnNotes(fe)))
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(m.cols)) + "\n")
	for _, c := range m.rows {
		fmt.Fprintf(&b, "| %s%s |", c.what, mark(c.notes))
		for _, fe := range m.cols {
			fmt.Fprintf(&b, " %s%s |", m.seenLocked(c, fe), mark(cellNotes(c, fe)))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for i, n := range used {
		fmt.Fprintf(&b, "%d. %s\n", i+1, n)
	}
	return b.String()
}
