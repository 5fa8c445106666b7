// Package plot draws what a simulation came to, as SVG: the course of a run, and the
// waits of its visitors by the minute in which they came.
//
// The same result gives the same bytes: nothing in a picture depends on the time
// of day or the order of a map.
package plot

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/ropeline/ropeline/bench/sim"
)

// Write draws r into dir, which must be there: the course of the run and, if
// anybody was let in, the heat map of waits. The method
// is part of the names, so that the pictures of two methods fit into one
// directory. It returns the names of the files, which it replaces.
func Write(dir string, r *sim.Result) (names []string, err error) {
	write := func(kind string, data []byte) {
		name := kind + "-" + r.Method + ".svg"
		if err == nil {
			names, err = append(names, name), os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
	}
	write("course", course(r))
	if len(r.Waits.Rows) > 0 {
		write("waits", waits(r))
	}
	return names, err
}

// about says in a line what was run.
func about(r *sim.Result) string {
	one := func(n int, word string) string {
		if n == 1 {
			return "1 " + word
		}
		return fmt.Sprintf("%d %ss", n, word)
	}
	return fmt.Sprintf("method %s, policy %s, %s of %s, %s visitors, seed %d", r.Method, r.Policy, one(r.Sites, "site"), one(r.Nodes, "node"), grouped(float64(r.Visitors)), r.Seed)
}

// clock is the unit in which the time of a run is written.
type clock struct {
	seconds float64 // of one unit
	name    string
}

// clockFor returns minutes for runs up to some hours, and hours beyond.
func clockFor(seconds float64) clock {
	if seconds > 4*3600 {
		return clock{3600, "hours"}
	}
	return clock{60, "minutes"}
}
