package suite

import (
	"regexp"
	"strconv"
	"time"
)

// ofCollection are the processor times in the line that gctrace=1 has Go write for a collection: the first phase at which all stands still; what requests
// had to help, and the work beside them; what was done while there was nothing else to do; and the last phase.
//
//	gc 5 @1.234s 2%: 0.018+1.2+0.003 ms clock, 0.036+0.5/1.1/0+0.006 ms cpu, 4->4->1 MB, ...
var ofCollection = regexp.MustCompile(`(?m)^gc .* ms clock, ([0-9.]+)\+([0-9.]+)/([0-9.]+)/[0-9.]+\+([0-9.]+) ms cpu,`)

// collecting returns the processor time that collections took, out of the lines that a program wrote. What was done while
// there was nothing else to do is left out, as nobody waits for it.
func collecting(log string) (total time.Duration) {
	for _, times := range ofCollection.FindAllStringSubmatch(log, -1) {
		for _, text := range times[1:] {
			v, _ := strconv.ParseFloat(text, 64)
			total += time.Duration(v * float64(time.Millisecond))
		}
	}
	return total
}
