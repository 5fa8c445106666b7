package expr

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Error says what is wrong with a source, and where. Each error of Compile is an
// *Error.
type Error struct {
	Line, Column int    // from 1, in characters
	Message      string // what was found, and what is allowed

	text string // the line that is meant
}

// Error returns place and message in one line.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// excerptMax is how many characters of a line are shown on either side of what
// is wrong with it.
const excerptMax = 60

// Excerpt returns the line that is meant and, in a second one, a caret below the
// character that is. Of a long line it shows what is around that character.
func (e *Error) Excerpt() string {
	line := []rune(e.text)
	at := min(e.Column-1, len(line))
	before, after := line[:at], line[at:]
	mark := ""
	if len(before) > excerptMax {
		before, mark = before[len(before)-excerptMax:], "…"
	}
	tail := ""
	if len(after) > excerptMax {
		after, tail = after[:excerptMax], "…"
	}
	var b strings.Builder
	b.WriteString(mark + string(before) + string(after) + tail + "\n")
	for _, c := range mark + string(before) {
		// A tab is as wide below as it is above.
		if c != '\t' {
			c = ' '
		}
		b.WriteRune(c)
	}
	b.WriteByte('^')
	return b.String()
}

// errorAt returns an error about the byte of source at offset, which may be its
// end.
func errorAt(source string, offset int, format string, args ...any) *Error {
	begin := strings.LastIndexByte(source[:offset], '\n') + 1
	text, _, _ := strings.Cut(source[begin:], "\n")
	return &Error{
		Line:    strings.Count(source[:begin], "\n") + 1,
		Column:  utf8.RuneCountInString(source[begin:offset]) + 1,
		Message: fmt.Sprintf(format, args...),
		text:    strings.TrimSuffix(text, "\r"),
	}
}

// nearest returns which of the known names may have been meant, or "" where none
// is near. The last part of a dotted name tells most: up to a third of it may be
// mistyped. Of those before it some are often left out or added; one may be another if
// the last is right.
func nearest(name string, known []string) string {
	best, fewest := "", 0
	parts := strings.Split(name, ".")
	last := len(parts) - 1
	for _, k := range known {
		theirs := strings.Split(k, ".")
		end := len(theirs) - 1
		typos, isNear := mistyped(parts[last], theirs[end])
		before := edits(parts[:last], theirs[:end])
		// As many edits as the lengths differ: nothing but left out or added.
		if !isNear || before != max(last-end, end-last) && (before > 1 || typos > 0) {
			continue
		}
		if n := typos + before; best == "" || n < fewest {
			best, fewest = k, n
		}
	}
	return best
}

// mistyped returns how many letters a and b differ by, and whether they may be the same
// word: a third of it is wrong at most, or one is the other with more behind it.
func mistyped(a, b string) (n int, isNear bool) {
	n = edits([]byte(a), []byte(b))
	shorter, longer := min(len(a), len(b)), max(len(a), len(b))
	return n, 3*n <= longer || 2*shorter >= longer && n == longer-shorter && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

// edits returns by how many inserted, removed, replaced or swapped elements a and b
// differ (optimal string alignment, row by row).
func edits[T comparable](a, b []T) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		before, above, row = above, row, before
		row[0] = i + 1
		for j := range b {
			replaced := above[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, row[j]+1, above[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// unknown says that there is no such field, function or list, and which ones
// there are.
func unknown(source string, offset int, what, name string, known []string) *Error {
	slices.Sort(known)
	switch near := nearest(name, known); {
	case near != "":
		return errorAt(source, offset, "there is no %s %s; did you mean %s?", what, name, near)
	case len(known) == 0:
		return errorAt(source, offset, "there is no %s %s, nor any other", what, name)
	}
	return errorAt(source, offset, "there is no %s %s; there are %s", what, name, strings.Join(known, ", "))
}
