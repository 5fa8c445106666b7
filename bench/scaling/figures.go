//go:build linux

package scaling

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/ropeline/ropeline/bench/drawing"
	"github.com/ropeline/ropeline/bench/measurement"
)

// figures is what was measured, by size, in order of rounds.
type figures struct{ of map[int][]figure }

func (f *figures) add(size int, x figure) {
	if f.of == nil {
		f.of = map[int][]figure{}
	}
	f.of[size] = append(f.of[size], x)
}

// spread is the least, the median and the most of some values.
type spread struct{ least, median, most float64 }

func spreadOf(all []figure, of func(figure) float64) spread {
	values := make([]float64, len(all))
	for i := range all {
		values[i] = of(all[i])
	}
	return spread{slices.Min(values), measurement.Median(values), slices.Max(values)}
}

// decision returns what one of a kind takes, in µs.
func (f *figures) decision(size int, kind string) spread {
	return spreadOf(f.of[size], func(x figure) float64 { return float64(x.Decision[kind]) / 1e3 })
}

// ratio compares each round with the same round of sites of one node.
func (f *figures) ratio(size int, kind string) spread {
	ratios := make([]figure, len(f.of[size]))
	for i, x := range f.of[size] {
		ratios[i].Idle = x.Decision[kind] * 1_000_000 / max(1, f.of[1][i].Decision[kind])
	}
	return spreadOf(ratios, func(x figure) float64 { return float64(x.Idle) / 1e6 })
}

// idle returns what a node takes while nobody asks, in µs per second.
func (f *figures) idle(size int) spread {
	return spreadOf(f.of[size], func(x figure) float64 { return float64(x.Idle) / 1e3 })
}

func (f *figures) table(cfg config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| nodes in a site |")
	for _, kind := range kinds {
		fmt.Fprintf(&b, " %s, µs | of one node's |", kind)
	}
	fmt.Fprintf(&b, " while nobody asks, per node |\n|---|%s---|\n", strings.Repeat("---|---|", len(kinds)))
	for _, size := range sizes {
		fmt.Fprintf(&b, "| %d |", size)
		for _, kind := range kinds {
			d, r := f.decision(size, kind), f.ratio(size, kind)
			fmt.Fprintf(&b, " %.1f (%.1f to %.1f) | %.2f (%.2f to %.2f) |", d.median, d.least, d.most, r.median, r.least, r.most)
		}
		i := f.idle(size)
		fmt.Fprintf(&b, " %.1f ms/s (%.1f to %.1f) |\n", i.median/1e3, i.least/1e3, i.most/1e3)
	}
	var asked []string
	for _, kind := range kinds {
		least := math.Inf(1)
		for _, size := range sizes {
			least = min(least, spreadOf(f.of[size], func(x figure) float64 { return x.Asked[kind] }).least)
		}
		asked = append(asked, fmt.Sprintf("%.0f", least))
	}
	fmt.Fprintf(&b, "\nMedians of %d rounds, and what they were between; %d processes each time, %.0f requests per node and second wanted, and at least %s made.\n",
		cfg.rounds, processes, cfg.rate, strings.Join(asked, ", "))
	return b.String()
}

// draw draws the ratios into a directory.
func (f *figures) draw(dir string) error {
	p := drawing.NewPlot("processor time of a decision, by nodes in the site")
	p.X.Label.Text, p.Y.Label.Text = "nodes", "of that in a site of one node"
	p.Y.Min, p.Y.Max, p.X.Min = 0, 1.5, 0
	colours := []color.Color{color.RGBA{R: 31, G: 119, B: 180, A: 255}, color.RGBA{R: 214, G: 97, B: 39, A: 255}, color.RGBA{R: 44, G: 140, B: 60, A: 255}}
	for _, limit := range []float64{0.9, 1.1} {
		l, err := plotter.NewLine(plotter.XYs{{X: 0, Y: limit}, {X: processes, Y: limit}})
		if err != nil {
			return err
		}
		l.Color, l.Dashes = color.Gray{160}, []vg.Length{3, 3}
		p.Add(l)
	}
	for i, kind := range kinds {
		points := make(plotter.XYs, len(sizes))
		for j, size := range sizes {
			points[j] = plotter.XY{X: float64(size), Y: f.ratio(size, kind).median}
			p.Y.Max = max(p.Y.Max, points[j].Y)
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.Color, dots.Color, dots.Shape = colours[i], colours[i], draw.CircleGlyph{}
		p.Add(line, dots)
		p.Legend.Add(kind, line, dots)
	}
	_, err := drawing.Write(dir, drawing.Picture{Name: "scaling", Width: 16 * vg.Centimeter, Height: 9 * vg.Centimeter, Draw: p.Draw})
	return err
}
