package plot

import (
	"fmt"
	"slices"

	"github.com/ropeline/ropeline/bench/sim"
)

// Bounds on the cells of a heat map: finer ones cannot be told apart.
const (
	mostColumns = 360
	mostRows    = 80
)

// waits draws how long those who came in each minute waited: a column for each
// minute of arrival, darker where more of them are.
func waits(r *sim.Result) []byte {
	cells := newCells(r.Waits)
	p := newPicture(648, 360)
	p.text(300, 20, 13, "middle", false, about(r))
	p.text(300, 36, 13, "middle", false, fmt.Sprintf("wait over arrival: R² = %.3f, correlation = %.3f", r.Waits.R2, r.Waits.Correlation))
	f := frame{picture: p, left: 60, upper: 46, width: 490, height: 270, right: cells.width * float64(cells.columns), top: cells.height * float64(cells.rows)}
	f.grid(8, 8)
	width, height := f.width/float64(cells.columns), f.height/float64(cells.rows)
	for i, column := range cells.counts {
		for j, n := range column {
			if n > 0 { // a cell without visitors has no colour
				p.rect(f.left+float64(i)*width, f.upper+f.height-float64(j+1)*height, width, height, dark(n/cells.top))
			}
		}
	}
	f.axes(8, 8, "time of arrival ["+cells.across.name+"]", "wait ["+cells.up.name+"]")
	scale := frame{picture: p, left: 612, upper: f.upper, width: 20, height: f.height, right: 1, top: cells.top}
	const steps = 50
	for i := range steps {
		p.rect(scale.left, scale.y(float64(i+1)/steps*cells.top), scale.width, scale.height/steps, dark((float64(i)+0.5)/steps))
	}
	what := "visitors"
	if cells.most > cells.top {
		what = fmt.Sprintf("visitors (at most %s)", grouped(cells.most))
	}
	scale.axes(0, 8, "", what)
	return p.end()
}

// shades go from light to dark, even in a print without colour.
var shades = [][3]float64{{0xf1, 0xf7, 0xda}, {0xc3, 0xe5, 0xb4}, {0x41, 0xb0, 0xc4}, {0x22, 0x5e, 0xa8}, {0x08, 0x1d, 0x58}}

// dark is the colour of a part of 1, or more.
func dark(part float64) string {
	at := min(part, 1) * float64(len(shades)-1)
	i := min(int(at), len(shades)-2)
	var mixed [3]any
	for c := range mixed {
		mixed[c] = int(shades[i][c] + (at-float64(i))*(shades[i+1][c]-shades[i][c]))
	}
	return fmt.Sprintf("#%02x%02x%02x", mixed[:]...)
}

// cells are the waits of a run, as a grid of counts.
type cells struct {
	counts        [][]float64 // by column, then by row
	columns, rows int
	width, height float64 // of a cell, in the units of the axes
	across, up    clock
	most          float64 // the largest count
	// top is the count with the darkest colour: that of which one cell in a
	// hundred has more, so that a few do not make all others pale.
	top float64
}

// newCells puts neighbours together where a run has more than can be drawn.
func newCells(w sim.Waits) *cells {
	steps := 1
	for _, row := range w.Rows {
		steps = max(steps, len(row.Counts))
	}
	perColumn := (len(w.Rows) + mostColumns - 1) / mostColumns
	perRow := (steps + mostRows - 1) / mostRows
	c := &cells{
		columns: (len(w.Rows) + perColumn - 1) / perColumn, rows: (steps + perRow - 1) / perRow, most: 1, top: 1,
		across: clockFor(float64(len(w.Rows)) * sim.WaitEvery.Seconds()), up: clockFor(float64(steps) * w.Step),
	}
	c.width = float64(perColumn) * sim.WaitEvery.Seconds() / c.across.seconds
	c.height = float64(perRow) * w.Step / c.up.seconds
	c.counts = make([][]float64, c.columns)
	for i := range c.counts {
		c.counts[i] = make([]float64, c.rows)
	}
	for i, row := range w.Rows {
		for j, n := range row.Counts {
			c.counts[i/perColumn][j/perRow] += float64(n)
		}
	}
	filled := slices.DeleteFunc(slices.Concat(c.counts...), func(n float64) bool { return n == 0 })
	slices.Sort(filled)
	if len(filled) > 0 {
		c.most, c.top = filled[len(filled)-1], filled[(len(filled)-1)*99/100]
	}
	return c
}
