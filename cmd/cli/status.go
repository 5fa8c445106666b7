package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// StatusLine is one line of a terminal that is drawn again and again, with a
// bar in front. On anything but a terminal it draws nothing.
type StatusLine struct {
	w     io.Writer
	width func() int // columns of the terminal; nil: not a terminal
}

// NewStatusLine returns a line on w.
func NewStatusLine(w io.Writer) StatusLine {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return StatusLine{w: w}
	}
	return StatusLine{w: w, width: func() int {
		columns, _, err := term.GetSize(int(f.Fd()))
		if err != nil || columns <= 0 {
			return 80
		}
		return columns
	}}
}

// Visible reports whether there is a terminal to draw on.
func (l StatusLine) Visible() bool { return l.width != nil }

// Show draws value of limit as a bar, and words behind it. What does not fit is
// cut, because a line that wraps cannot be drawn over.
func (l StatusLine) Show(value, limit int, words string) {
	if !l.Visible() {
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

// Clear takes the line away, so that something lasting can be printed.
func (l StatusLine) Clear() {
	if l.Visible() {
		_, _ = io.WriteString(l.w, "\r\x1b[K")
	}
}

// drawBar returns value of limit as a bar of some cells.
func drawBar(value, limit, cells int) string {
	limit = max(limit, 1)
	value = min(max(value, 0), limit)
	full := value * cells / limit
	return fmt.Sprintf("%d%% %s%s", value*100/limit, strings.Repeat("█", full), strings.Repeat("░", cells-full))
}
