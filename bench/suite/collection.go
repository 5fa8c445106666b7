package suite

import (
	"strconv"
	"strings"
	"time"
)

// traceCollections has a program in Go write a line for each collection of garbage.
const traceCollections = "GODEBUG=gctrace=1"

// collecting returns the processor time that collections took, out of the lines that a program wrote: the phases at
// which it stands still, what requests had to help, and the work beside them. What was done while there was nothing
// else to do is left out, as nobody waits for it.
func collecting(log string) (total time.Duration) {
	for line := range strings.Lines(log) {
		// gc 5 @1.234s 2%: 0.018+1.2+0.003 ms clock, 0.036+0.5/1.1/0+0.006 ms cpu, 4->4->1 MB, ...
		if !strings.HasPrefix(line, "gc ") {
			continue
		}
		_, rest, _ := strings.Cut(line, " ms clock, ")
		phases, _, ok := strings.Cut(rest, " ms cpu,")
		stops := strings.Split(phases, "+")
		if !ok || len(stops) != 3 {
			continue
		}
		beside := strings.Split(stops[1], "/")
		if len(beside) != 3 {
			continue
		}
		for _, text := range []string{stops[0], beside[0], beside[1], stops[2]} {
			v, _ := strconv.ParseFloat(text, 64)
			total += time.Duration(v * float64(time.Millisecond))
		}
	}
	return total
}
