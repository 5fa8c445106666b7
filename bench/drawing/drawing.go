// Package drawing is the style that all pictures of ours have, and writes them as SVG.
//
// The same picture gives the same bytes: nothing in it depends on the time of day, the machine's fonts or the order
// of a map.
package drawing

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Picture is one drawing of a given size. All fields are required.
type Picture struct {
	Name          string // of its files, without the ending
	Width, Height vg.Length
	Draw          func(draw.Canvas)
}

// Write writes pictures into dir, which must be there, each as SVG. It returns the names of the files, which it
// replaces.
func Write(dir string, pictures ...Picture) ([]string, error) {
	var names []string
	for _, p := range pictures {
		name := p.Name + ".svg"
		data, err := encode(p)
		if err != nil {
			return names, fmt.Errorf("draw %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return names, fmt.Errorf("write picture: %w", err)
		}
		names = append(names, name)
	}
	return names, nil
}

func encode(p Picture) ([]byte, error) {
	canvas := vgsvg.New(p.Width, p.Height)
	p.Draw(draw.New(canvas))
	var out bytes.Buffer
	_, err := canvas.WriteTo(&out)
	return out.Bytes(), err
}

// The colours keep apart for those who see red and green alike.
var (
	Ink    = color.RGBA{0x33, 0x33, 0x33, 0xff}
	Faint  = color.RGBA{0xe6, 0xe6, 0xe6, 0xff}
	Shade  = color.RGBA{0xf3, 0xe3, 0xe0, 0xff}
	Blue   = color.RGBA{0x1f, 0x6f, 0xb4, 0xff}
	Orange = color.RGBA{0xe0, 0x7b, 0x10, 0xff}
	Teal   = color.RGBA{0x1a, 0x93, 0x7d, 0xff}
	Red    = color.RGBA{0xb3, 0x24, 0x2c, 0xff}
)

// NewPlot returns an empty plot in the style of all.
func NewPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = vg.Points(6)
	p.Title.TextStyle.Color = Ink
	p.Title.TextStyle.Font = Sans(13)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color = Ink
		axis.LineStyle.Width = vg.Points(0.6)
		axis.Label.TextStyle.Font = Sans(11)
		axis.Label.TextStyle.Color = Ink
		axis.Label.Padding = vg.Points(3)
		axis.Tick.Label.Font = Sans(10)
		axis.Tick.Label.Color = Ink
		axis.Tick.Color = Ink
		axis.Tick.Length = vg.Points(4)
		axis.Tick.Marker = EvenTicks{Most: 8}
		axis.Padding = 0
	}
	p.Y.Tick.Marker = EvenTicks{Most: 5}
	return p
}

// Grid returns lines behind a plot.
func Grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Horizontal.Color, g.Vertical.Color = Faint, Faint
	g.Horizontal.Width, g.Vertical.Width = vg.Points(0.6), vg.Points(0.6)
	return g
}

// Sans returns the font of all texts, in points.
func Sans(size float64) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
}
