package plot

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/ropeline/ropeline/bench/drawing"
	"github.com/ropeline/ropeline/bench/sim"
)

// mostPoints bounds the points of a line: more than the pixels of a picture
// only make files larger.
const mostPoints = 1500

// course draws a run over time: who comes and is let in per minute, who is
// inside, and who waits, one above the other because their sizes differ.
func course(r *sim.Result) drawing.Picture {
	pts := thinned(r.Series)
	end := 1.0
	if len(pts) > 0 {
		end = pts[len(pts)-1].At
	}
	unit := clockFor(end)
	faults := bands(r.Faults, unit, end)
	panels := []*panel{newPanel(about(r), faults), newPanel("", faults), newPanel("", faults)}
	flowPanel(panels[0], pts, unit)
	insidePanel(panels[1], pts, unit)
	linePanel(panels[2], pts, unit)
	if len(faults) > 0 {
		panels[0].legend.Add("fault", faults[0])
	}
	for _, p := range panels {
		p.X.Min, p.X.Max = 0, end/unit.seconds
		p.Y.Min, p.Y.Max = 0, max(p.Y.Max*1.06, 1)
	}
	panels[len(panels)-1].X.Label.Text = "time since the start [" + unit.name + "]"
	return drawing.Picture{
		Name: "course-" + r.Method, Width: 9 * vg.Inch, Height: 7.2 * vg.Inch,
		Draw: func(c draw.Canvas) { stack(c, panels) },
	}
}

// panel is one of several plots above each other. Its legend stands to its
// right, where it hides nothing.
type panel struct {
	*plot.Plot
	legend plot.Legend
}

func newPanel(title string, faults []band) *panel {
	p := &panel{Plot: drawing.NewPlot(title), legend: plot.NewLegend()}
	p.legend.Top, p.legend.Left = true, true
	p.legend.TextStyle.Font = drawing.Sans(10)
	p.legend.TextStyle.Color = drawing.Ink
	p.legend.Padding = vg.Points(5)
	for _, b := range faults {
		p.Add(b)
	}
	p.Add(drawing.Grid())
	return p
}

// stack draws panels one above the other, their time axes aligned.
func stack(c draw.Canvas, panels []*panel) {
	rows := make([][]*plot.Plot, len(panels))
	for i, p := range panels {
		rows[i] = []*plot.Plot{p.Plot}
	}
	tiles := draw.Tiles{
		Rows: len(rows), Cols: 1, PadY: vg.Points(10),
		PadTop: vg.Points(8), PadBottom: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(110),
	}
	for i, canvases := range plot.Align(rows, tiles, c) {
		p := panels[i]
		p.Draw(canvases[0])
		inner := p.DataCanvas(canvases[0])
		p.legend.Draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: inner.Max.X + vg.Points(8), Y: inner.Min.Y},
			Max: vg.Point{X: c.Max.X, Y: inner.Max.Y},
		}})
	}
}

func flowPanel(p *panel, pts []sim.Point, unit clock) {
	p.Y.Label.Text = "visitors per minute"
	perMinute := 60 / sim.PointEvery.Seconds()
	p.line(pts, unit, "come", drawing.Orange, func(s sim.Point) float64 { return float64(s.Arrivals) * perMinute })
	p.line(pts, unit, "let in", drawing.Blue, func(s sim.Point) float64 { return float64(s.Minute) })
	p.limit(pts, unit, func(s sim.Point) float64 { return float64(s.PerMin) })
}

func insidePanel(p *panel, pts []sim.Point, unit clock) {
	p.Y.Label.Text = "active visitors"
	p.line(pts, unit, "active", drawing.Blue, func(s sim.Point) float64 { return float64(s.Active) })
	p.limit(pts, unit, func(s sim.Point) float64 { return float64(s.Limit) })
}

func linePanel(p *panel, pts []sim.Point, unit clock) {
	p.Y.Label.Text = "waiting visitors"
	p.line(pts, unit, "waiting", drawing.Teal, func(s sim.Point) float64 { return float64(s.Waiting) })
}

func (p *panel) line(pts []sim.Point, unit clock, name string, c color.Color, value func(sim.Point) float64) {
	line := &plotter.Line{XYs: points(pts, unit, value)}
	line.LineStyle = draw.LineStyle{Color: c, Width: vg.Points(1.3)}
	if len(line.XYs) > 0 {
		p.Add(line)
	}
	p.legend.Add(name, line)
}

// limit adds the limit, unless the run is so far below it that nothing else
// could be seen beside it.
func (p *panel) limit(pts []sim.Point, unit clock, value func(sim.Point) float64) {
	line := &plotter.Line{XYs: points(pts, unit, value)}
	line.LineStyle = draw.LineStyle{Color: drawing.Red, Width: vg.Points(1.1), Dashes: []vg.Length{vg.Points(5), vg.Points(3)}}
	limit := 0.0
	for _, xy := range line.XYs {
		limit = max(limit, xy.Y)
	}
	if len(line.XYs) == 0 {
		return
	}
	if limit > 8*max(p.Y.Max, 1) {
		p.legend.Add(fmt.Sprintf("limit: %s", drawing.Grouped(limit)))
		return
	}
	p.Add(line)
	p.legend.Add("limit", line)
}

func points(pts []sim.Point, unit clock, value func(sim.Point) float64) plotter.XYs {
	xys := make(plotter.XYs, len(pts))
	for i, s := range pts {
		xys[i] = plotter.XY{X: s.At / unit.seconds, Y: value(s)}
	}
	return xys
}

// thinned returns at most mostPoints points. Of each group it takes the largest
// values, so that no excess gets lost.
func thinned(series []sim.Point) []sim.Point {
	group := (len(series) + mostPoints - 1) / mostPoints
	if group <= 1 {
		return series
	}
	var out []sim.Point
	for i, s := range series {
		if i%group == 0 {
			out = append(out, s)
			continue
		}
		o := &out[len(out)-1]
		o.Arrivals, o.Minute = max(o.Arrivals, s.Arrivals), max(o.Minute, s.Minute)
		o.Active, o.Waiting = max(o.Active, s.Active), max(o.Waiting, s.Waiting)
		o.Limit, o.PerMin = max(o.Limit, s.Limit), max(o.PerMin, s.PerMin)
	}
	return out
}

// band is a stretch of time behind everything else.
type band struct{ from, until float64 }

// bands returns the times in which something was wrong.
func bands(faults []sim.Fault, unit clock, end float64) []band {
	var out []band
	for _, f := range faults {
		b := band{f.From.Seconds() / unit.seconds, (f.From + f.For).Seconds() / unit.seconds}
		if f.For == 0 {
			b.until = end / unit.seconds // it stays so
		}
		out = append(out, b)
	}
	return out
}

// Plot implements [plot.Plotter].
func (b band) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	left, right := max(x(b.from), c.Min.X), min(x(b.until), c.Max.X)
	if left < right {
		c.FillPolygon(drawing.Shade, []vg.Point{{X: left, Y: c.Min.Y}, {X: right, Y: c.Min.Y}, {X: right, Y: c.Max.Y}, {X: left, Y: c.Max.Y}})
	}
}

// Thumbnail implements [plot.Thumbnailer].
func (b band) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(drawing.Shade, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
}
