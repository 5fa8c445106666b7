package main

import (
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// statusLine is one line of a terminal that is drawn again and again, with a
// bar in front. On anything but a terminal it draws nothing.
type statusLine struct {
	w     io.Writer
	width func() int // columns of the terminal; nil: not a terminal
}

func newStatusLine(w io.Writer) statusLine {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return statusLine{w: w}
	}
	return statusLine{w: w, width: func() int {
		columns, _, err := term.GetSize(int(f.Fd()))
		if err != nil || columns <= 0 {
			return 80
		}
		return columns
	}}
}

// visible reports whether there is a terminal to draw on.
func (l statusLine) visible() bool { return l.width != nil }

// show draws value of limit as a bar, and words behind it. What does not fit is
// cut, because a line that wraps cannot be drawn over.
func (l statusLine) show(value, limit int, words string) {
	if !l.visible() {
		return
	}
	width := l.width()
	cells := 20
	if width < 100 {
		cells = 10 // the words say more
	}
	line := text.Snip(drawBar(value, limit, cells)+"  "+words, width-1, "…")
	// A status that cannot be drawn is no reason to stop what it tells about.
	_, _ = io.WriteString(l.w, "\r"+line+"\x1b[K")
}

// clear takes the line away, so that something lasting can be printed.
func (l statusLine) clear() {
	if l.visible() {
		_, _ = io.WriteString(l.w, "\r\x1b[K")
	}
}

// drawBar returns value of limit as a bar of some cells. It is a new bar each time: one that
// was full once is over, but a room gets emptier again.
func drawBar(value, limit, cells int) string {
	limit = max(limit, 1)
	bar := progressbar.NewOptions(limit,
		progressbar.OptionSetWriter(io.Discard),
		progressbar.OptionSetWidth(cells),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetRenderBlankState(true),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "█", SaucerPadding: "░"}),
	)
	_ = bar.Set(min(max(value, 0), limit))
	return strings.TrimSpace(bar.String())
}
