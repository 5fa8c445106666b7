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
	switch v.Type {
	case Bool:
		return strconv.AppendBool(b, v.boolean(s))
	case Int:
		return strconv.AppendInt(b, int64(v.integer(s)), 10)
	case Time:
		t := v.moment(s)
		if t.IsZero() {
			return append(b, "null"...)
		}
		b = append(b, '"')
		return append(appendTime(b, t), '"')
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

// appendTime appends t, and nothing for none.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return t.UTC().AppendFormat(b, timeFormat)
}
