package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestStatusLine(t *testing.T) {
	var out bytes.Buffer
	line := StatusLine{w: &out, width: func() int { return 40 }}
	for _, tc := range []struct {
		value, full int
		part        string
	}{
		{0, 0, "0%"}, {4, 2, "20%"}, {20, 10, "100%"}, {10, 5, "50%"}, {25, 10, "100%"}, {-1, 0, "0%"},
	} {
		out.Reset()
		line.Show(tc.value, 20, "some words that are far too long for it")
		got := strings.TrimSuffix(strings.TrimPrefix(out.String(), "\r"), "\x1b[K")
		if n := strings.Count(got, "█"); n != tc.full {
			t.Errorf("%d of 20: %d of 10 cells are full: %q", tc.value, n, got)
		}
		if !strings.Contains(got, tc.part) || !strings.HasSuffix(got, "…") {
			t.Errorf("%d of 20: got %q, want %s and cut words", tc.value, got, tc.part)
		}
		if n := utf8.RuneCountInString(got); n > 39 || strings.ContainsAny(got, "\r\n") {
			t.Errorf("%d of 20: got %q of %d columns, want one line of less than 40", tc.value, got, n)
		}
	}
}

func TestStatusLineHasALongerBarWhereThereIsSpace(t *testing.T) {
	var out bytes.Buffer
	line := StatusLine{w: &out, width: func() int { return 120 }}
	line.Show(5, 20, "all of the words")
	if got := out.String(); strings.Count(got, "█") != 5 || !strings.Contains(got, "all of the words") {
		t.Errorf("got %q, want 5 of 20 cells full, and all of the words", got)
	}
}

func TestStatusLineOnNoTerminal(t *testing.T) {
	var out bytes.Buffer
	line := NewStatusLine(&out)
	line.Show(1, 2, "words")
	line.Clear()
	if out.Len() != 0 {
		t.Errorf("drew %q on something that is no terminal", out.String())
	}
}
