// Package flame draws flame graphs of profiles, as SVG that needs no script: the program at the bottom, what a function
// called above it, and as wide as what was spent there. Functions that took a hair's breadth are left out.
package flame

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// frame is a function with what it called. The zero value is one that took nothing.
type frame struct {
	name  string
	value int64 // of itself and all that it called
	calls map[string]*frame
}

func (f *frame) call(name string) *frame {
	if f.calls == nil {
		f.calls = map[string]*frame{}
	}
	c := f.calls[name]
	if c == nil {
		c = &frame{name: name}
		f.calls[name] = c
	}
	return c
}

// sorted returns what f called, by name: so the same functions stand at the same places in two pictures.
func (f *frame) sorted() []*frame {
	all := make([]*frame, 0, len(f.calls))
	for _, c := range f.calls {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *frame) int { return cmp.Compare(a.name, b.name) })
	return all
}

// Config says what is drawn. The zero value draws the last kind of value that a profile has, which is the one that
// it is about.
type Config struct {
	Title string
	Kind  string // of value, such as "cpu" or "alloc_space"; empty: the last
}

// Write reads a profile of pprof and draws it.
func Write(w io.Writer, in io.Reader, c Config) error {
	p, err := profile.Parse(in)
	if err != nil {
		return fmt.Errorf("read a profile: %w", err)
	}
	index := len(p.SampleType) - 1
	if c.Kind != "" {
		index = slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == c.Kind })
	}
	if index < 0 {
		return fmt.Errorf("the profile has no values of the kind %q", c.Kind)
	}
	root := stacksOf(p, index)
	d := drawing{total: root.value, unit: p.SampleType[index].Unit}
	d.measure(root, 0)
	return d.write(w, root, c.Title)
}

func stacksOf(p *profile.Profile, index int) *frame {
	root := &frame{name: "all"}
	for _, s := range p.Sample {
		v := s.Value[index]
		at := root
		at.value += v
		for _, l := range slices.Backward(s.Location) {
			for _, line := range slices.Backward(l.Line) { // those that were inlined come first
				if line.Function == nil {
					continue
				}
				at = at.call(line.Function.Name)
				at.value += v
			}
		}
	}
	return root
}

// Sizes, in points.
const (
	width  = 1200.0
	high   = 17.0
	margin = 10.0
	above  = 34.0 // for the title
	letter = 6.3  // how wide one is, nearly
	least  = 1.2  // of what is drawn
)

type drawing struct {
	total   int64
	unit    string
	deepest int
}

func (d *drawing) wide(v int64) float64 {
	if d.total == 0 {
		return 0
	}
	return float64(v) / float64(d.total) * (width - 2*margin)
}

func (d *drawing) measure(f *frame, depth int) {
	if d.wide(f.value) < least && depth > 0 {
		return
	}
	d.deepest = max(d.deepest, depth)
	for _, c := range f.calls {
		d.measure(c, depth+1)
	}
}

func (d *drawing) write(w io.Writer, root *frame, title string) error {
	height := above + float64(d.deepest+1)*high + margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="Liberation Sans, Arial, sans-serif" font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#ffffff"/><text x="%.0f" y="22" font-size="15" text-anchor="middle" fill="#333333">%s</text>`+"\n", width/2, html.EscapeString(title))
	d.draw(&b, root, margin, height-margin-high, 0)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (d *drawing) draw(b *strings.Builder, f *frame, x, y float64, depth int) {
	wide := d.wide(f.value)
	if wide < least && depth > 0 {
		return
	}
	part := 0.0
	if d.total > 0 {
		part = float64(f.value) / float64(d.total) * 100
	}
	fmt.Fprintf(b, `<g><title>%s: %.1f %%</title><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" rx="1"/>`,
		html.EscapeString(f.name), part, x, y, max(wide-0.4, 0.4), high-1, colourOf(f.name))
	if text := fitting(short(f.name), int((wide-6)/letter)); text != "" {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="#222222">%s</text>`, x+3, y+high-5, html.EscapeString(text))
	}
	b.WriteString("</g>\n")
	for _, c := range f.sorted() {
		d.draw(b, c, x, y-high, depth+1)
		x += d.wide(c.value)
	}
}

// short leaves out the path of a package, but its last part: "github.com/a/b.(*T).M[...]" becomes "b.(*T).M".
func short(name string) string {
	name = strings.ReplaceAll(name, "[...]", "")
	return name[strings.LastIndexByte(name, '/')+1:]
}

// fitting cuts a text to so many letters; empty where none that tell anything are left.
func fitting(text string, most int) string {
	switch {
	case most < 3:
		return ""
	case len(text) <= most:
		return text
	}
	return text[:most-1] + "…"
}

// colourOf tells apart who a function is of.
func colourOf(name string) string {
	switch {
	case strings.Contains(name, "gcBgMarkWorker"), strings.Contains(name, "runtime.gc"), strings.Contains(name, "mallocgc"), strings.Contains(name, "sweep"):
		return "#e8a0a0" // memory and its collection
	case strings.HasPrefix(name, "syscall."), strings.HasPrefix(name, "internal/runtime/syscall"), strings.Contains(name, "epollwait"), strings.Contains(name, "netpoll"):
		return "#c9c9c9" // the kernel
	case strings.HasPrefix(name, "github.com/ropeline/ropeline/"), strings.HasPrefix(name, "main."):
		return "#8fbfe6" // ours
	case strings.HasPrefix(name, "runtime."), strings.HasPrefix(name, "internal/runtime/"), strings.HasPrefix(name, "internal/"):
		return "#e3dcc8" // Go itself
	case strings.Contains(name, "."), name == "all":
		return "#a9d9c9" // libraries
	}
	return "#dddddd"
}
