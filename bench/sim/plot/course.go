package plot

import (
	"slices"

	"github.com/ropeline/ropeline/bench/sim"
)

// mostPoints bounds the points of a line: more than the pixels of a picture
// only make files larger.
const mostPoints = 1500

// line is a figure over time.
type line struct {
	name, colour string
	of           func(sim.Point) float64
	limit        bool
}

// panels are drawn one above the other, because their sizes differ: who comes and is let in per minute, who is
// inside, and who waits.
var panels = []struct {
	what  string
	lines []line
}{
	{"visitors per minute", []line{
		{"come", orange, func(s sim.Point) float64 { return float64(s.Arrivals) * 60 / sim.PointEvery.Seconds() }, false},
		{"let in", blue, func(s sim.Point) float64 { return float64(s.Minute) }, false},
		{"limit", red, func(s sim.Point) float64 { return float64(s.PerMin) }, true},
	}},
	{"active visitors", []line{
		{"active", blue, func(s sim.Point) float64 { return float64(s.Active) }, false},
		{"limit", red, func(s sim.Point) float64 { return float64(s.Limit) }, true},
	}},
	{"waiting visitors", []line{{"waiting", teal, func(s sim.Point) float64 { return float64(s.Waiting) }, false}}},
}

// course draws a run over time.
func course(r *sim.Result) []byte {
	pts, end := thinned(r.Series), 1.0
	if len(pts) > 0 {
		end = pts[len(pts)-1].At
	}
	unit := clockFor(end)
	p := newPicture(648, 518)
	p.text(300, 20, 13, "middle", false, about(r))
	for i, panel := range panels {
		f := frame{picture: p, left: 60, upper: 34 + float64(i)*150, width: 470, height: 130, right: end / unit.seconds, top: 1}
		var shown []line
		for _, l := range panel.lines { // a limit so far above all that nothing else could be seen beside it is only named
			if most := highest(pts, l.of); !l.limit || most <= 8*max(f.top, 1) {
				f.top, shown = max(f.top, most), append(shown, l)
			} else {
				p.text(f.left+f.width+8, f.upper+13*float64(len(shown)+1), 10, "start", false, "limit: "+grouped(most))
			}
		}
		f.top *= 1.06
		f.faults(r.Faults, unit)
		f.grid(8, 5)
		for n, l := range shown {
			f.draw(pts, unit, l, n)
		}
		if i == 0 && len(r.Faults) > 0 {
			p.rect(f.left+f.width+8, f.upper+13*float64(len(panel.lines))+2, 20, 10, shade)
			p.text(f.left+f.width+34, f.upper+13*float64(len(panel.lines)+1)-2, 10, "start", false, "fault")
		}
		below := ""
		if i == len(panels)-1 {
			below = "time since the start [" + unit.name + "]"
		}
		f.axes(8, 5, below, panel.what)
	}
	return p.end()
}

func highest(pts []sim.Point, of func(sim.Point) float64) (most float64) {
	for _, s := range pts {
		most = max(most, of(s))
	}
	return most
}

// draw draws a line, and names it, as the nth, at the right.
func (f *frame) draw(pts []sim.Point, unit clock, l line, n int) {
	width, dash := 1.3, ""
	if l.limit {
		width, dash = 1.1, "5 3"
	}
	var at []float64
	for _, s := range pts {
		at = append(at, f.x(s.At/unit.seconds), f.y(l.of(s)))
	}
	f.line(l.colour, width, dash, at...)
	x, y := f.left+f.width+8, f.upper+13*float64(n+1)-4
	f.line(l.colour, width, dash, x, y, x+20, y)
	f.text(x+26, y+3.5, 10, "start", false, l.name)
}

// faults shades the times in which something was wrong.
func (f *frame) faults(faults []sim.Fault, unit clock) {
	for _, fault := range faults {
		from, until := fault.From.Seconds()/unit.seconds, (fault.From+fault.For).Seconds()/unit.seconds
		if fault.For == 0 || until > f.right { // it stays so
			until = f.right
		}
		if from < until {
			f.rect(f.x(from), f.upper, f.x(until)-f.x(from), f.height, shade)
		}
	}
}

// thinned returns at most mostPoints points. Of each group it takes the largest
// values, so that no excess gets lost.
func thinned(series []sim.Point) (out []sim.Point) {
	group := max(1, (len(series)+mostPoints-1)/mostPoints)
	for some := range slices.Chunk(series, group) {
		o := some[0]
		for _, s := range some[1:] {
			o.Arrivals, o.Minute = max(o.Arrivals, s.Arrivals), max(o.Minute, s.Minute)
			o.Active, o.Waiting = max(o.Active, s.Active), max(o.Waiting, s.Waiting)
			o.Limit, o.PerMin = max(o.Limit, s.Limit), max(o.PerMin, s.PerMin)
		}
		out = append(out, o)
	}
	return out
}
