package accesslog

import (
	"net/netip"
	"strconv"
	"time"
)

// Bounds in bytes of what a line takes of a request, before escaping.
const (
	maxMethod   = 32
	maxTarget   = 8 << 10
	maxProtocol = 16
	maxReferer  = 1 << 10
	maxAgent    = 512
	maxRoom     = 128
	maxDecision = 32

	// MaxLine is the length of the longest line, if every byte has to be escaped.
	MaxLine = 4*(maxMethod+maxTarget+maxProtocol+maxReferer+maxAgent+maxRoom+maxDecision) + 256
)

// Entry is one finished request. Its byte slices are not kept. Empty texts and the zero
// address are written as "-".
type Entry struct {
	Addr     netip.Addr // of the visitor; a zone is left out
	Time     time.Time  // when the request ended
	Method   []byte
	Target   []byte // as in the request line
	Protocol []byte
	Status   int   // 0 if nothing was answered, which is written as 000
	Bytes    int64 // of the answer's body; 0 is written as "-"
	Referer  []byte
	Agent    []byte

	Room     string        // the room's name, "" for none
	Decision string        // what became of the request, in one word
	Wait     time.Duration // how long the visitor has waited so far; negative: does not apply
}

// AppendLine appends the line of e, with its end.
func AppendLine(dst []byte, e *Entry) []byte {
	if e.Addr.IsValid() {
		dst = e.Addr.Unmap().WithZone("").AppendTo(dst)
	} else {
		dst = append(dst, '-')
	}
	dst = append(dst, " - - ["...)
	dst = e.Time.UTC().AppendFormat(dst, "02/Jan/2006:15:04:05 -0700")
	dst = append(dst, `] "`...)
	dst = appendText(dst, e.Method, maxMethod)
	dst = append(dst, ' ')
	dst = appendText(dst, e.Target, maxTarget)
	dst = append(dst, ' ')
	dst = appendText(dst, e.Protocol, maxProtocol)
	dst = append(dst, `" `...)
	dst = appendStatus(dst, e.Status)
	dst = append(dst, ' ')
	if e.Bytes > 0 {
		dst = strconv.AppendInt(dst, e.Bytes, 10)
	} else {
		dst = append(dst, '-')
	}
	dst = appendQuoted(dst, e.Referer, maxReferer)
	dst = appendQuoted(dst, e.Agent, maxAgent)
	dst = appendQuoted(dst, e.Room, maxRoom)
	dst = appendQuoted(dst, e.Decision, maxDecision)
	if e.Wait < 0 {
		return append(dst, " -\n"...)
	}
	dst = strconv.AppendFloat(append(dst, ' '), e.Wait.Seconds(), 'f', 3, 64)
	return append(dst, '\n')
}

// appendStatus writes three digits, whatever the number.
func appendStatus(dst []byte, status int) []byte {
	if status < 0 || status > 999 {
		status = 0
	}
	return append(dst, byte('0'+status/100), byte('0'+status/10%10), byte('0'+status%10))
}

func appendQuoted[T string | []byte](dst []byte, text T, most int) []byte {
	return append(appendText(append(dst, ` "`...), text, most), '"')
}

// appendText writes text such that it can neither end a quote nor a line, nor do anything
// to a terminal.
func appendText[T string | []byte](dst []byte, text T, most int) []byte {
	if len(text) == 0 {
		return append(dst, '-')
	}
	const hex = "0123456789abcdef"
	for i := range min(len(text), most) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ' || c > '~':
			dst = append(dst, '\\', 'x', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
