package suite

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/docpage"
	"github.com/ropeline/ropeline/bench/drawing"
)

// figure is what a benchmark is about: the bars of its chart.
type figure struct {
	axis string // what they are, with the unit
	of   func(*Sample) float64
}

// drawn is the figure of the chart.
func (r *Result) drawn() figure {
	if r.figure.of != nil {
		return r.figure
	}
	return figure{"processor time of the server per request [µs]", func(s *Sample) float64 { return s.CPU }}
}

// maker is the command that makes a result, as marks in the page have it.
func maker(name string) string { return "ropeline-bench run " + name }

// page is the page that results stand in.
func page(docs string) string { return filepath.Join(docs, "benchmarks.md") }

// WriteDocs writes the result into the documentation in a directory: as JSON, as pictures, and into the page.
func (r *Result) WriteDocs(docs string) error {
	text, err := r.AppendJSON(nil)
	if err != nil {
		return err
	}
	for _, dir := range []string{"bench", "img"} {
		if err := os.MkdirAll(filepath.Join(docs, dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(docs, "bench", r.Name+".json"), text, 0o644); err != nil {
		return err
	}
	if _, err := drawing.Write(filepath.Join(docs, "img"), r.chart()); err != nil {
		return err
	}
	return docpage.Write(io.Discard, page(docs), maker(r.Name), r.section())
}

// section is what stands in the page.
func (r *Result) section() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n\n%s\n\n", r.Question, r.Method)
	fmt.Fprintf(&b, "![%s: %s](img/bench-%s.svg)\n\n", r.Title, r.drawn().axis, r.Name)
	b.WriteString(r.Markdown())
	fmt.Fprintf(&b, "\nMade on %s by `ropeline-bench run %s --set rounds=%d,for=%v`; each round is in [%[2]s.json](bench/%[2]s.json).\n",
		r.Made.Format("2 January 2006"), r.Name, r.Rounds, time.Duration(r.Seconds*float64(time.Second)))
	return b.String()
}
