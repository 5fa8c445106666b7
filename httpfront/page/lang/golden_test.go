package lang

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/golden"
)

// TestGolden shows every text of every language with sample values, key by key
// with English first. The lines of one language, and English beside them:
//
//	grep -e '^#' -e '^en-US' -e '^de-DE' testdata/golden/texts.txt
func TestGolden(t *testing.T) {
	golden.File(t, "testdata/golden/texts.txt", goldenText())
}

func goldenText() string {
	all := append([]*Language{Of(English)}, slices.DeleteFunc(All(), func(l *Language) bool { return l.Tag() == English })...)
	var out strings.Builder
	section := func(name string, text func(*Language) string) {
		fmt.Fprintf(&out, "# %s\n", name)
		for _, l := range all {
			fmt.Fprintf(&out, "%s  %s\n", l.Tag(), text(l))
		}
		out.WriteByte('\n')
	}
	section("name and direction", func(l *Language) string { return l.Name() + ", " + l.Dir() })
	for i := range textCount {
		section(Text(i).String(), func(l *Language) string { return l.Text(Text(i)) })
	}
	numbers := func(name string, add func(*Language, []byte, int) []byte, list ...int) {
		section(fmt.Sprintf("%s %v", name, list), func(l *Language) string {
			var parts []string
			for _, n := range list {
				parts = append(parts, string(add(l, nil, n)))
			}
			return strings.Join(parts, " | ")
		})
	}
	numbers("number", (*Language).AppendNumber, 0, 9, 12, 345, 1234, 12345, 1234567)
	numbers("minutes", (*Language).AppendMinutes, 0, 1, 2, 3, 5, 11, 20, 21, 22, 59)
	numbers("hours", (*Language).AppendMinutes, 60, 61, 65, 121, 202, 5*60+5, 21*60)
	numbers("days", (*Language).AppendMinutes, 24*60, 24*60+1, 2*24*60, 3*24*60+3*60, 5*24*60, 45*24*60)
	section("tab", func(l *Language) string { return string(l.AppendTab(nil, 1234, l.Text(TitleInLine))) })
	for _, r := range [][2]int{{1, 2}, {10, 25}, {20, 21}, {45, 90}, {60, 120}, {600, 1800}, {1441, 1499}} {
		section(fmt.Sprintf("range %d to %d", r[0], r[1]), func(l *Language) string { return string(l.AppendRange(nil, r[0], r[1])) })
	}
	section("clock 00:00:00, 03:04:05, 15:04:05", func(l *Language) string {
		var parts []string
		for _, s := range []int{0, 3*3600 + 245, 15*3600 + 245} {
			parts = append(parts, string(l.AppendClock(nil, time.Unix(int64(s), 0))))
		}
		return strings.Join(parts, " | ")
	})
	return out.String()
}
