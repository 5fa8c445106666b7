package drawing

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// EvenTicks labels an axis at whole steps that people count in.
type EvenTicks struct {
	Most int // how many there are at most
}

// Ticks implements [plot.Ticker].
func (e EvenTicks) Ticks(low, high float64) []plot.Tick {
	size := stepOf(high-low, e.Most)
	var ticks []plot.Tick
	for i := math.Ceil(low/size - 1e-9); i*size <= high+size*1e-9; i++ {
		ticks = append(ticks, plot.Tick{Value: i * size, Label: Grouped(i * size)})
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

// Grouped writes a number with blanks between thousands, and without digits
// that a step of an axis does not have.
func Grouped(v float64) string {
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
