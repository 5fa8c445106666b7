package room

import "strconv"

// AppendFormatted appends an estimate in English to dst: "5 minutes", "1 hour and
// 5 minutes", under Random a range such as "5 minutes - 12 minutes", and
// "unavailable" if it is not known.
func (e Estimate) AppendFormatted(dst []byte, method Method) []byte {
	switch {
	case !e.Known:
		return append(dst, "unavailable"...)
	case method == Random && e.P75 > e.P25:
		dst = AppendMinutes(dst, e.P25)
		dst = append(dst, " - "...)
		return AppendMinutes(dst, e.P75)
	case method == Random:
		return AppendMinutes(dst, e.P75)
	}
	return AppendMinutes(dst, e.Minutes)
}

// AppendMinutes appends a span of whole minutes in English to dst. A negative one
// is written as none.
func AppendMinutes(dst []byte, minutes int) []byte {
	minutes = max(0, minutes)
	hours := minutes / 60
	if hours == 0 {
		return appendCount(dst, minutes, "minute")
	}
	dst = appendCount(dst, hours, "hour")
	if minutes %= 60; minutes > 0 {
		dst = append(dst, " and "...)
		dst = appendCount(dst, minutes, "minute")
	}
	return dst
}

func appendCount(dst []byte, n int, unit string) []byte {
	dst = strconv.AppendInt(dst, int64(n), 10)
	dst = append(append(dst, ' '), unit...)
	if n != 1 {
		dst = append(dst, 's')
	}
	return dst
}
