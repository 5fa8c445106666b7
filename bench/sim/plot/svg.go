package plot

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// The colours keep apart for those who see red and green alike.
const (
	ink    = "#333333"
	faint  = "#e6e6e6"
	shade  = "#f3e3e0"
	blue   = "#1f6fb4"
	orange = "#e07b10"
	teal   = "#1a937d"
	red    = "#b3242c"
)

// picture is an SVG as it is drawn. All lengths are in points.
type picture struct{ bytes.Buffer }

func newPicture(width, height float64) *picture {
	p := new(picture)
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" width="%gpt" height="%gpt" viewBox="0 0 %[1]g %[2]g" font-family="Liberation Sans, Arial, sans-serif" fill="%s">`+"\n", width, height, ink)
	p.rect(0, 0, width, height, "white")
	return p
}

// end returns the whole file.
func (p *picture) end() []byte { return append(p.Bytes(), "</svg>\n"...) }

func (p *picture) rect(x, y, width, height float64, fill string) {
	fmt.Fprintf(p, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s" shape-rendering="crispEdges"/>`+"\n", short(x), short(y), short(width), short(height), fill)
}

// line draws a line through points, x and y in turn. dash is as SVG has it; "": none.
func (p *picture) line(colour string, width float64, dash string, points ...float64) {
	var at strings.Builder
	for i := 0; i < len(points); i += 2 {
		at.WriteString(short(points[i]) + "," + short(points[i+1]) + " ")
	}
	fmt.Fprintf(p, `<polyline fill="none" stroke="%s" stroke-width="%g" stroke-dasharray="%s" points="%s"/>`+"\n", colour, width, dash, strings.TrimSpace(at.String()))
}

// text writes at a point, which is the start, middle or end of the text by anchor; turned, it goes up.
func (p *picture) text(x, y, size float64, anchor string, turned bool, text string) {
	turn := ""
	if turned {
		turn = fmt.Sprintf(` transform="rotate(-90 %s %s)"`, short(x), short(y))
	}
	fmt.Fprintf(p, `<text x="%s" y="%s" font-size="%g" text-anchor="%s"%s>%s</text>`+"\n", short(x), short(y), size, anchor, turn, html.EscapeString(text))
}

func short(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }

// frame is where values are drawn, from 0 up to right and top.
type frame struct {
	*picture
	left, upper, width, height float64
	right, top                 float64
}

func (f *frame) x(v float64) float64 { return f.left + f.width*v/f.right }

func (f *frame) y(v float64) float64 { return f.upper + f.height*(1-v/f.top) }

// grid draws what is behind the values.
func (f *frame) grid(columns, rows int) {
	for v := range ticks(f.right, columns) {
		f.line(faint, 0.6, "", f.x(v), f.upper, f.x(v), f.upper+f.height)
	}
	for v := range ticks(f.top, rows) {
		f.line(faint, 0.6, "", f.left, f.y(v), f.left+f.width, f.y(v))
	}
}

// axes draws the axes, and what they are. Without a number of columns it leaves out the one below.
func (f *frame) axes(columns, rows int, below, beside string) {
	bottom := f.upper + f.height
	if columns > 0 {
		f.line(ink, 0.6, "", f.left, bottom, f.left+f.width, bottom)
		for v := range ticks(f.right, columns) {
			f.line(ink, 0.6, "", f.x(v), bottom, f.x(v), bottom+4)
			f.text(f.x(v), bottom+14, 10, "middle", false, grouped(v))
		}
		f.text(f.left+f.width/2, bottom+28, 11, "middle", false, below)
	}
	f.line(ink, 0.6, "", f.left, f.upper, f.left, bottom)
	for v := range ticks(f.top, rows) {
		f.line(ink, 0.6, "", f.left-4, f.y(v), f.left, f.y(v))
		f.text(f.left-6, f.y(v)+3.5, 10, "end", false, grouped(v))
	}
	f.text(f.left-44, f.upper+f.height/2, 11, "middle", true, beside)
}

// ticks are at whole steps that people count in: at most so many steps of 1, 2 or 5 times a power of ten, up to high.
func ticks(high float64, most int) func(func(float64) bool) {
	size := 1.0
	if high > 0 {
		power := math.Pow(10, math.Floor(math.Log10(high/float64(most))))
		for _, factor := range []float64{1, 2, 5, 10} {
			if size = factor * power; high/size <= float64(most) {
				break
			}
		}
	}
	return func(yield func(float64) bool) {
		for i := 0.0; i*size <= high+size*1e-9 && yield(i*size); i++ {
		}
	}
}

// grouped writes a number with blanks between thousands, and without digits
// that a step of an axis does not have.
func grouped(v float64) string {
	whole, part, cut := strings.Cut(strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64), ".")
	for i := len(whole) - 3; i > 0 && len(whole) > 4; i -= 3 {
		whole = whole[:i] + "\u00a0" + whole[i:]
	}
	if cut {
		return whole + "." + part
	}
	return whole
}
