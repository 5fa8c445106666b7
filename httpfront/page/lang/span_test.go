package lang

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ropeline/ropeline/bench/must"
)

func TestAppendMinutes(t *testing.T) {
	for minutes, want := range map[int]string{
		math.MinInt: "less than a minute", -1: "less than a minute", 0: "less than a minute",
		1: "1 minute", 2: "2 minutes", 59: "59 minutes",
		60: "1 hour", 61: "1 hour and 1 minute", 125: "2 hours and 5 minutes", 1439: "23 hours and 59 minutes",
		1440: "1 day", 1441: "1 day and 1 hour", 1500: "1 day and 1 hour", 1501: "1 day and 2 hours",
		2879: "2 days", 2880: "2 days", 3 * 1440: "3 days", 1440*1234 + 60: "1,234 days and 1 hour",
		math.MaxInt64: "6,405,119,470,038,038 days and 19 hours",
	} {
		equal(t, fmt.Sprint(minutes), string(Of(English).AppendMinutes(nil, minutes)), want)
	}
}

func TestAppendRange(t *testing.T) {
	for of, want := range map[[2]int]string{
		{10, 25}: "about 10 to 25 minutes", {25, 10}: "about 10 to 25 minutes", {0, 2}: "about 1 to 2 minutes", {-7, 2}: "about 1 to 2 minutes",
		{1, 1}: "1 minute", {0, 1}: "1 minute", {0, 0}: "less than a minute", {-3, -1}: "less than a minute", {7, 7}: "7 minutes",
		{45, 60}: "about 45 minutes to 1 hour", {59, 61}: "about 59 minutes to 1 hour and 1 minute", {90, 90}: "1 hour and 30 minutes",
		{600, 1800}: "about 10 hours to 1 day and 6 hours", {1439, 1440}: "about 23 hours and 59 minutes to 1 day",
		{1441, 1500}: "1 day and 1 hour", {1440, 1441}: "about 1 day to 1 day and 1 hour",
	} {
		equal(t, fmt.Sprint(of), string(Of(English).AppendRange(nil, of[0], of[1])), want)
	}
}

func TestAppendNumber(t *testing.T) {
	for tag, numbers := range map[Tag]map[int]string{
		English: {
			math.MinInt: "0", -1: "0", 0: "0", 999: "999", 1000: "1,000", 999999: "999,999",
			1000000: "1,000,000", math.MaxInt64: "9,223,372,036,854,775,807",
		},
		"hi-IN": {999: "999", 1000: "1,000", 99999: "99,999", 100000: "1,00,000", 10000000: "1,00,00,000"},
	} {
		for n, want := range numbers {
			equal(t, fmt.Sprint(tag, n), string(Of(tag).AppendNumber(nil, n)), want)
		}
	}
}

func TestAppendClockIsInUTC(t *testing.T) {
	at := time.Date(2026, 7, 1, 0, 30, 0, 999, time.FixedZone("east", 9*3600))
	for tag, want := range map[Tag]string{English: "3:30:00\u00a0PM UTC", "de-DE": "15:30:00 UTC", "fa-IR": "۱۵:۳۰:۰۰ UTC"} {
		equal(t, string(tag), string(Of(tag).AppendClock(nil, at)), want)
	}
}

// TestDigitsAreTheLanguagesOwn looks for digits of two kinds in one value.
func TestDigitsAreTheLanguagesOwn(t *testing.T) {
	for _, l := range All() {
		zero := cmp.Or(map[Tag]rune{"ar-EG": '٠', "fa-IR": '۰'}[l.Tag()], '0')
		for _, text := range samples(l) {
			for _, c := range text {
				for _, other := range []rune{'0', '٠', '۰', '०'} {
					if other != zero && other <= c && c <= other+9 {
						t.Errorf("%s: the digit %q in %q", l.Tag(), c, text)
					}
				}
			}
		}
	}
}

// samples returns what the Append methods write, for numbers small and large.
func samples(l *Language) (all []string) {
	add := func(b []byte) { all = append(all, string(b)) }
	for _, n := range []int{math.MinInt, 0, 1, 2, 3, 5, 7, 11, 21, 25, 59, 60, 61, 121, 1439, 1440, 1441, 4321, 99999, math.MaxInt} {
		add(l.AppendNumber(nil, n))
		add(l.AppendMinutes(nil, n))
		add(l.AppendTab(nil, n, l.Text(TitleInLine)))
		for _, m := range []int{0, 1, 2, 58, 59, 60, 1440, 1501} {
			add(l.AppendRange(nil, n, m))
		}
	}
	for hour := range 24 {
		add(l.AppendClock(nil, time.Date(2026, 1, 2, hour, 4, 59, 0, time.UTC)))
	}
	return all
}

// TestNothingHasToBeEscaped holds what the package promises of all it gives.
func TestNothingHasToBeEscaped(t *testing.T) {
	_, regions, err := load(files)
	all := All()
	for _, r := range must.Do(regions, err) {
		all = append(all, r.Language)
	}
	for _, l := range all {
		texts := samples(l)
		for i := range textCount {
			texts = append(texts, l.Text(Text(i)))
		}
		for _, text := range texts {
			if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, special) || strings.ContainsAny(text, "{}") {
				t.Errorf("%s: %q", l.Tag(), text)
			}
		}
	}
}

// TestAppendKeepsWhatIsThere checks that methods append.
func TestAppendKeepsWhatIsThere(t *testing.T) {
	for _, l := range All() {
		dst, want := []byte("before "), "before "
		for _, add := range []func(dst []byte) []byte{
			func(dst []byte) []byte { return l.AppendNumber(dst, 1234) },
			func(dst []byte) []byte { return l.AppendMinutes(dst, 65) },
			func(dst []byte) []byte { return l.AppendRange(dst, 5, 99) },
			func(dst []byte) []byte { return l.AppendTab(dst, 9, "a <b>") },
			func(dst []byte) []byte { return l.AppendClock(dst, time.Unix(0, 0)) },
		} {
			dst, want = add(dst), want+string(add(nil))
		}
		equal(t, string(l.Tag()), string(dst), want)
	}
}

// TestRangesReadTheSameBothWays also says that a range of one span is that span.
func TestRangesReadTheSameBothWays(t *testing.T) {
	for _, l := range All() {
		for low := -1; low < 3000; low += 101 {
			for high := low; high < 3000; high += 97 {
				there, back := string(l.AppendRange(nil, low, high)), string(l.AppendRange(nil, high, low))
				if there != back {
					t.Errorf("%s: %d to %d is %q, and the other way %q", l.Tag(), low, high, there, back)
				}
				first, last := string(l.AppendMinutes(nil, max(low, 1))), string(l.AppendMinutes(nil, high))
				if alone := there == last; alone != (first == last || high < 1) {
					t.Errorf("%s: %d to %d is %q", l.Tag(), low, high, there)
				}
			}
		}
	}
}
