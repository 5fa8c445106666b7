package page

import (
	"strconv"
	"time"
)

// timeFormat is RFC 3339 with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// AppendJSON appends what programs are told: one object under the key that clients
// of hosted waiting rooms know, with every variable that is not for templates only.
func (p *Page) AppendJSON(dst []byte, s *State) []byte {
	dst = append(dst, `{"cfWaitingRoom":{`...)
	for i := range variables {
		v := &variables[i]
		if v.TemplateOnly {
			continue
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = append(dst, v.Name...)
		dst = append(dst, '"', ':')
		dst = v.appendJSON(dst, s)
	}
	return append(dst, "}}\n"...)
}

func (v *Variable) appendJSON(b []byte, s *State) []byte {
	switch {
	case v.Type == Bool || v.Type == Int:
		return v.appendText(b, s)
	case v.Type == Time && v.moment(s).IsZero():
		return append(b, "null"...)
	case v.Type == Time:
		return append(v.appendText(append(b, '"'), s), '"')
	}
	b = append(b, '"')
	start := len(b)
	return append(jsonEscapes.escape(v.words(s, b), start), '"')
}

// appendText appends what a template or page shows of v, not escaped.
func (v *Variable) appendText(b []byte, s *State) []byte {
	switch v.Type {
	case Bool:
		return strconv.AppendBool(b, v.boolean(s))
	case Int:
		return strconv.AppendInt(b, int64(v.integer(s)), 10)
	case Time:
		return appendTime(b, v.moment(s))
	}
	return v.words(s, b)
}

// appendTime appends t, of the years 0 to 9999, as timeFormat says, and nothing for none. A
// page has it several times, and package time reads the format each time.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b = append(appendDigits(b, year, 4), '-')
	b = append(appendDigits(b, int(month), 2), '-')
	b = append(appendDigits(b, day, 2), 'T')
	b = append(appendDigits(b, hour, 2), ':')
	b = append(appendDigits(b, minute, 2), ':')
	b = append(appendDigits(b, second, 2), '.')
	return append(appendDigits(b, t.Nanosecond()/int(time.Millisecond), 3), 'Z')
}

// appendDigits appends the last so many digits of n, which is not negative.
func appendDigits(b []byte, n, digits int) []byte {
	b = append(b, "0000"[:digits]...)
	for i := len(b) - 1; n > 0 && digits > 0; i, n, digits = i-1, n/10, digits-1 {
		b[i] = byte('0' + n%10)
	}
	return b
}
