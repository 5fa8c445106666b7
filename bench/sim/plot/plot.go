// Package plot draws what a simulation came to: the course of a run, and the
// waits of its visitors by the minute in which they came.
//
// The same result gives the same bytes: nothing in a picture depends on the time
// of day, the machine's fonts or the order of a map.
package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/ropeline/ropeline/bench/sim"
)

// dpi makes a PNG sharp on screens of today and still small.
const dpi = 130

// picture is one drawing of a given size.
type picture struct {
	name          string // of its files, without the ending
	width, height vg.Length
	draw          func(draw.Canvas)
}

// Write draws r into dir, which must be there: the course of the run and, if
// anybody was let in, the heat map of waits, each as PNG and as SVG. The method
// is part of the names, so that the pictures of two methods fit into one
// directory. It returns the names of the files, which it replaces.
func Write(dir string, r *sim.Result) ([]string, error) { return write(dir, r, dpi) }

func write(dir string, r *sim.Result, dpi int) ([]string, error) {
	pictures := []picture{course(r)}
	if len(r.Waits.Rows) > 0 {
		pictures = append(pictures, waits(r))
	}
	var names []string
	for _, p := range pictures {
		for _, format := range []struct {
			ending string
			encode func(picture) ([]byte, error)
		}{{".png", func(p picture) ([]byte, error) { return encodePNG(p, dpi) }}, {".svg", encodeSVG}} {
			data, err := format.encode(p)
			if err != nil {
				return names, fmt.Errorf("draw %s: %w", p.name+format.ending, err)
			}
			if err := os.WriteFile(filepath.Join(dir, p.name+format.ending), data, 0o644); err != nil {
				return names, fmt.Errorf("write picture: %w", err)
			}
			names = append(names, p.name+format.ending)
		}
	}
	return names, nil
}

func encodePNG(p picture, dpi int) ([]byte, error) {
	canvas := vgimg.NewWith(vgimg.UseWH(p.width, p.height), vgimg.UseDPI(dpi))
	p.draw(draw.New(canvas))
	var out bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(&out)
	return out.Bytes(), err
}

func encodeSVG(p picture) ([]byte, error) {
	canvas := vgsvg.New(p.width, p.height)
	p.draw(draw.New(canvas))
	var out bytes.Buffer
	_, err := canvas.WriteTo(&out)
	return out.Bytes(), err
}

// The colours keep apart for those who see red and green alike.
var (
	ink    = color.RGBA{0x33, 0x33, 0x33, 0xff}
	faint  = color.RGBA{0xe6, 0xe6, 0xe6, 0xff}
	shade  = color.RGBA{0xf3, 0xe3, 0xe0, 0xff}
	blue   = color.RGBA{0x1f, 0x6f, 0xb4, 0xff}
	orange = color.RGBA{0xe0, 0x7b, 0x10, 0xff}
	teal   = color.RGBA{0x1a, 0x93, 0x7d, 0xff}
	red    = color.RGBA{0xb3, 0x24, 0x2c, 0xff}
)

// newPlot returns an empty plot in the style of all.
func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = vg.Points(6)
	p.Title.TextStyle.Color = ink
	p.Title.TextStyle.Font = sans(13)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color = ink
		axis.LineStyle.Width = vg.Points(0.6)
		axis.Label.TextStyle.Font = sans(11)
		axis.Label.TextStyle.Color = ink
		axis.Label.Padding = vg.Points(3)
		axis.Tick.Label.Font = sans(10)
		axis.Tick.Label.Color = ink
		axis.Tick.Color = ink
		axis.Tick.Length = vg.Points(4)
		axis.Tick.Marker = evenTicks{most: 8}
		axis.Padding = 0
	}
	p.Y.Tick.Marker = evenTicks{most: 5}
	return p
}

func sans(size float64) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
}

// about says in a line what was run.
func about(r *sim.Result) string {
	one := func(n int, word string) string {
		if n == 1 {
			return "1 " + word
		}
		return fmt.Sprintf("%d %ss", n, word)
	}
	words := []string{
		"method " + r.Method, "policy " + r.Policy, one(r.Sites, "site") + " of " + one(r.Nodes, "node"),
		grouped(float64(r.Visitors)) + " visitors", fmt.Sprintf("seed %d", r.Seed),
	}
	return strings.Join(words, ", ")
}
