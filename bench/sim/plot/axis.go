package plot

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// evenTicks labels an axis at whole steps that people count in.
type evenTicks struct{ most int }

// Ticks implements [plot.Ticker].
func (e evenTicks) Ticks(low, high float64) []plot.Tick {
	size := stepOf(high-low, e.most)
	var ticks []plot.Tick
	for i := math.Ceil(low/size - 1e-9); i*size <= high+size*1e-9; i++ {
		ticks = append(ticks, plot.Tick{Value: i * size, Label: grouped(i * size)})
	}
	return ticks
}

// stepOf returns the least of 1, 2 and 5 times a power of ten of which at most
// most fit into span.
func stepOf(span float64, most int) float64 {
	if !(span > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(span/float64(most))))
	for _, factor := range []float64{1, 2, 5} {
		if size := factor * power; span/size <= float64(most) {
			return size
		}
	}
	return 10 * power
}

// grouped writes a number with blanks between thousands, and without digits
// that a step of an axis does not have.
func grouped(v float64) string {
	if v == 0 {
		return "0" // of either sign
	}
	text := strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
	whole, part, cut := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0 && len(whole) > 4; i -= 3 {
		whole = whole[:i] + "\u00a0" + whole[i:]
	}
	if cut {
		return sign + whole + "." + part
	}
	return sign + whole
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
