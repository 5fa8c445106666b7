// Package plot draws what a simulation came to: the course of a run, and the
// waits of its visitors by the minute in which they came.
//
// The same result gives the same bytes: nothing in a picture depends on the time
// of day, the machine's fonts or the order of a map.
package plot

import (
	"fmt"
	"strings"

	"github.com/ropeline/ropeline/bench/drawing"
	"github.com/ropeline/ropeline/bench/sim"
)

// Write draws r into dir, which must be there: the course of the run and, if
// anybody was let in, the heat map of waits, each as SVG. The method
// is part of the names, so that the pictures of two methods fit into one
// directory. It returns the names of the files, which it replaces.
func Write(dir string, r *sim.Result) ([]string, error) {
	pictures := []drawing.Picture{course(r)}
	if len(r.Waits.Rows) > 0 {
		pictures = append(pictures, waits(r))
	}
	return drawing.Write(dir, pictures...)
}

// about says in a line what was run.
func about(r *sim.Result) string {
	one := func(n int, word string) string {
		if n == 1 {
			return "1 " + word
		}
		return fmt.Sprintf("%d %ss", n, word)
	}
	words := []string{
		"method " + r.Method, "policy " + r.Policy, one(r.Sites, "site") + " of " + one(r.Nodes, "node"),
		drawing.Grouped(float64(r.Visitors)) + " visitors", fmt.Sprintf("seed %d", r.Seed),
	}
	return strings.Join(words, ", ")
}
