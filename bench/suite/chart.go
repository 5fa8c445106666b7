package suite

import (
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/ropeline/ropeline/bench/drawing"
)

// chart draws a bar for each row that was measured: the median of what it is about, with a line from the least to the
// most of the rounds. Ours are of another colour.
func (r *Result) chart() drawing.Picture {
	bars := bars{}
	for i := range r.Rows {
		row := &r.Rows[i]
		if s := row.spread(r.drawn().of); s.Max > 0 { // else it was not measured, or it is about something else
			bars = append(bars, bar{row.name(), strings.HasPrefix(row.Server, "ropeline"), s})
		}
	}
	p := drawing.NewPlot(r.Title)
	p.X.Label.Text = r.drawn().axis
	p.Add(drawing.Grid(), bars)
	p.X.Min = 0
	p.X.Max *= 1.12 // so that the figure fits behind the longest bar
	p.Y.Tick.Marker = bars
	p.Y.Min, p.Y.Max = -0.6, float64(len(bars))-0.4
	const perBar = 22 // points
	return drawing.Picture{
		Name: "bench-" + r.Name, Width: 9 * vg.Inch, Height: vg.Points(float64(80 + perBar*len(bars))),
		Draw: func(c draw.Canvas) { p.Draw(draw.Crop(c, vg.Points(6), vg.Points(-10), vg.Points(4), vg.Points(-6))) },
	}
}

// bar is one of a chart.
type bar struct {
	name string
	ours bool
	of   Spread
}

// bars are a chart's, the first one on top.
type bars []bar

// at is the height at which the bar of that index is.
func (b bars) at(i int) float64 { return float64(len(b) - 1 - i) }

// Ticks implements plot.Ticker: the names are those of the axis.
func (b bars) Ticks(_, _ float64) []plot.Tick {
	ticks := make([]plot.Tick, len(b))
	for i := range b {
		ticks[i] = plot.Tick{Value: b.at(i), Label: b[i].name}
	}
	return ticks
}

// DataRange implements plot.DataRanger.
func (b bars) DataRange() (xmin, xmax, ymin, ymax float64) {
	for _, one := range b {
		xmax = max(xmax, one.of.Max)
	}
	return 0, max(xmax, 1e-9), -0.6, float64(len(b)) - 0.4
}

const barWide = 0.32 // half of what a bar has of its place

// Plot implements plot.Plotter.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	thin := draw.LineStyle{Color: drawing.Ink, Width: vg.Points(1)}
	figures := draw.TextStyle{Color: drawing.Ink, Font: drawing.Sans(9), YAlign: draw.YCenter, Handler: p.Title.TextStyle.Handler}
	for i, one := range b {
		middle := b.at(i)
		low, high := y(middle-barWide), y(middle+barWide)
		var colour color.Color = drawing.Teal
		if one.ours {
			colour = drawing.Blue
		}
		end := x(one.of.Median)
		c.FillPolygon(colour, []vg.Point{{X: x(0), Y: low}, {X: end, Y: low}, {X: end, Y: high}, {X: x(0), Y: high}})
		from, to := x(one.of.Min), x(one.of.Max)
		if to > from {
			c.StrokeLines(thin, []vg.Point{{X: from, Y: y(middle)}, {X: to, Y: y(middle)}},
				[]vg.Point{{X: from, Y: y(middle - barWide/2)}, {X: from, Y: y(middle + barWide/2)}},
				[]vg.Point{{X: to, Y: y(middle - barWide/2)}, {X: to, Y: y(middle + barWide/2)}})
		}
		c.FillText(figures, vg.Point{X: max(end, to) + vg.Points(4), Y: y(middle)}, number(one.of.Median))
	}
}
