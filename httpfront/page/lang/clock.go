package lang

import (
	"fmt"
	"time"
)

// clock is how a language writes the time of day.
type clock struct {
	pattern string    // CLDR's letters, two of one for two digits: H hour, h hour of 12, m minute, s second, a half of the day
	halves  [2]string // before and after noon, if the pattern has an a
}

// AppendClock appends the time of day of t in UTC to the second, and says that
// it is UTC: "15:04:05 UTC", "3:04:05 PM UTC".
func (l *Language) AppendClock(dst []byte, t time.Time) []byte {
	t = t.UTC()
	for p := l.clock.pattern; p != ""; {
		c, width := p[0], 1
		for width < len(p) && p[width] == c {
			width++
		}
		p = p[width:]
		switch c {
		case 'H':
			dst = l.appendField(dst, t.Hour(), width)
		case 'h':
			dst = l.appendField(dst, (t.Hour()+11)%12+1, width)
		case 'm':
			dst = l.appendField(dst, t.Minute(), width)
		case 's':
			dst = l.appendField(dst, t.Second(), width)
		case 'a':
			dst = append(dst, l.clock.halves[t.Hour()/12]...)
		case ' ':
			dst = append(dst, "\u00a0"...) // not where a line may break
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, " UTC"...)
}

func (l *Language) appendField(dst []byte, n, width int) []byte {
	if width > 1 {
		return l.numbers.appendTwo(dst, n)
	}
	return l.AppendNumber(dst, n)
}

// parseClock checks a pattern.
func parseClock(pattern string, halves []string) (clock, error) {
	c := clock{pattern: pattern}
	switch pattern {
	case "H:mm:ss", "HH:mm:ss", "H.mm.ss", "HH.mm.ss":
		if len(halves) != 0 {
			return c, fmt.Errorf("clock %q has no a, but there are dayPeriods", pattern)
		}
	case "h:mm:ss a", "a h:mm:ss", "ah:mm:ss":
		if len(halves) != 2 || halves[0] == halves[1] || halves[0] == "" || halves[1] == "" {
			return c, fmt.Errorf("clock %q needs two different dayPeriods", pattern)
		}
		copy(c.halves[:], halves)
	default:
		return c, fmt.Errorf("clock %q is none of those that are known", pattern)
	}
	return c, nil
}
