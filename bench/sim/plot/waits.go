package plot

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/ropeline/ropeline/bench/drawing"
	"github.com/ropeline/ropeline/bench/sim"
)

// Bounds on the cells of a heat map: finer ones cannot be told apart.
const (
	mostColumns = 360
	mostRows    = 80
)

// shades is how many colours there are.
const shades = 200

// waits draws how long those who came in each minute waited: a column for each
// minute of arrival, darker where more of them are.
func waits(r *sim.Result) drawing.Picture {
	cells := newCells(r.Waits)
	colours := darkening()
	colours.SetMin(0)
	colours.SetMax(cells.top)

	p := drawing.NewPlot(fmt.Sprintf("%s\nwait over arrival: R² = %.3f, correlation = %.3f", about(r), r.Waits.R2, r.Waits.Correlation))
	p.X.Label.Text = "time of arrival [" + cells.across.name + "]"
	p.Y.Label.Text = "wait [" + cells.up.name + "]"
	p.Y.Tick.Marker = drawing.EvenTicks{Most: 8}
	heat := plotter.NewHeatMap(cells, colours.Palette(shades))
	heat.Min, heat.Max = 0, cells.top
	heat.Overflow = heat.Palette.Colors()[shades-1]
	p.Add(drawing.Grid(), heat)
	p.X.Min, p.X.Max = 0, cells.width*float64(cells.columns)
	p.Y.Min, p.Y.Max = 0, cells.height*float64(cells.rows)

	bar := drawing.NewPlot("")
	bar.Add(&plotter.ColorBar{ColorMap: colours, Vertical: true, Colors: shades})
	bar.HideX()
	bar.X.Min, bar.X.Max = 0, 1
	bar.Y.Label.Text = "visitors"
	if cells.most > cells.top {
		bar.Y.Label.Text = fmt.Sprintf("visitors (at most %s)", drawing.Grouped(cells.most))
	}
	bar.Y.Tick.Marker = drawing.EvenTicks{Most: 8}
	return drawing.Picture{
		Name: "waits-" + r.Method, Width: 9 * vg.Inch, Height: 5 * vg.Inch,
		Draw: func(c draw.Canvas) { beside(c, p, bar) },
	}
}

// darkening returns colours from light to dark, even in a print without colour.
func darkening() palette.ColorMap {
	colours, err := moreland.NewLuminance([]color.Color{
		color.RGBA{0x08, 0x1d, 0x58, 0xff}, color.RGBA{0x22, 0x5e, 0xa8, 0xff}, color.RGBA{0x41, 0xb0, 0xc4, 0xff},
		color.RGBA{0xc3, 0xe5, 0xb4, 0xff}, color.RGBA{0xf1, 0xf7, 0xda, 0xff},
	})
	if err != nil {
		panic(fmt.Sprintf("plot: colours of a heat map: %v", err)) // they are constants
	}
	return palette.Reverse(colours)
}

// beside draws a plot and the scale of its colours, which is as high.
func beside(c draw.Canvas, p, bar *plot.Plot) {
	const scale = 74 // points wide
	c = draw.Crop(c, vg.Points(6), vg.Points(-8), vg.Points(6), vg.Points(-8))
	left := draw.Crop(c, 0, vg.Points(-scale-12), 0, 0)
	right := draw.Crop(c, c.Max.X-c.Min.X-vg.Points(scale), 0, 0, 0)
	inner := p.DataCanvas(left)
	right.Min.Y, right.Max.Y = inner.Min.Y, inner.Max.Y
	p.Draw(left)
	bar.Draw(right)
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

var _ plotter.GridXYZ = (*cells)(nil)

// newCells puts neighbours together where a run has more than can be drawn.
func newCells(w sim.Waits) *cells {
	steps := 1
	for _, row := range w.Rows {
		steps = max(steps, len(row.Counts))
	}
	perColumn := (len(w.Rows) + mostColumns - 1) / mostColumns
	perRow := (steps + mostRows - 1) / mostRows
	c := &cells{
		columns: (len(w.Rows) + perColumn - 1) / perColumn,
		rows:    (steps + perRow - 1) / perRow,
	}
	c.across = clockFor(float64(len(w.Rows)) * sim.WaitEvery.Seconds())
	c.up = clockFor(float64(steps) * w.Step)
	c.width = float64(perColumn) * sim.WaitEvery.Seconds() / c.across.seconds
	c.height = float64(perRow) * w.Step / c.up.seconds
	c.counts = make([][]float64, c.columns)
	for i := range c.counts {
		c.counts[i] = make([]float64, c.rows)
	}
	for i, row := range w.Rows {
		for j, n := range row.Counts {
			cell := &c.counts[i/perColumn][j/perRow]
			*cell += float64(n)
		}
	}
	var filled []float64
	for _, column := range c.counts {
		for _, n := range column {
			if n > 0 {
				filled = append(filled, n)
			}
		}
	}
	slices.Sort(filled)
	c.most, c.top = 1, 1
	if len(filled) > 0 {
		c.most = filled[len(filled)-1]
		c.top = filled[(len(filled)-1)*99/100]
	}
	return c
}

// Dims implements [plotter.GridXYZ].
func (c *cells) Dims() (columns, rows int) { return c.columns, c.rows }

// Z implements [plotter.GridXYZ]. A cell without visitors has no colour.
func (c *cells) Z(column, row int) float64 {
	if n := c.counts[column][row]; n > 0 {
		return n
	}
	return math.NaN()
}

// X implements [plotter.GridXYZ].
func (c *cells) X(column int) float64 { return (float64(column) + 0.5) * c.width }

// Y implements [plotter.GridXYZ].
func (c *cells) Y(row int) float64 { return (float64(row) + 0.5) * c.height }
