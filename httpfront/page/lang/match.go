package lang

import "strings"

// Bounds on what is read of an Accept-Language field. Browsers send fewer than
// ten languages, and no tag of theirs is half as long.
const (
	mostRanges = 32
	longestTag = 35 // what RFC 5646, 4.4.1 asks of a buffer for tags
)

// Match returns the language that suits an Accept-Language field best, with the
// numbers of the region that it asks for. Without one that suits it is the one
// with the tag fallback, and English if there is no such language.
//
// Of the languages that the visitor asks for and that are there, the one with
// the greatest weight wins, the first of several with the same. A range is
// looked up as RFC 4647, 3.4 says: the longest part of it that is known. One that asks
// for another script than the language is written in is not there. Only if
// none of them is there, one that most readers of a language read as well is
// taken, such as Spanish for Catalan: who lists English after Catalan gets
// English. A range "*" and one with the weight 0 ask for nothing.
//
// Match does not allocate, and reads no more than 32 ranges, whatever it is
// given.
func Match[S ~string | ~[]byte](acceptLanguage S, fallback Tag) *Language {
	lib := loaded()
	var same, near *Language
	var sameWeight, nearWeight int
	rest := acceptLanguage
	for range mostRanges {
		if len(rest) == 0 {
			break
		}
		var element S
		element, rest = cutByte(rest, ',')
		tag, params := cutByte(element, ';')
		w := weight(params)
		if w <= sameWeight && w <= nearWeight {
			continue
		}
		c := find(lib.wanted, trim(tag))
		switch {
		case c.language == nil:
		case !c.near && w > sameWeight:
			same, sameWeight = c.language, w
		case c.near && w > nearWeight:
			near, nearWeight = c.language, w
		}
	}
	switch {
	case same != nil:
		return same
	case near != nil:
		return near
	}
	if l := lib.byTag[fallback]; l != nil {
		return l
	}
	return lib.byTag[English]
}

// find returns what is known of the longest part of a tag: the whole of it, or
// what is left without its last subtags.
func find[S ~string | ~[]byte](known map[string]candidate, tag S) candidate {
	if len(tag) > longestTag {
		return candidate{}
	}
	var buf [longestTag]byte
	for i := range len(tag) {
		switch c := tag[i]; {
		case 'A' <= c && c <= 'Z':
			buf[i] = c + 'a' - 'A'
		case c == '_': // as programs that ask the C library have it
			buf[i] = '-'
		default:
			buf[i] = c
		}
	}
	for n := len(tag); n > 0; {
		if c, ok := known[string(buf[:n])]; ok {
			if s := scriptAfter(buf[n:len(tag)]); s != nil && c.script != "" && string(s) != c.script {
				return candidate{} // of no use to who cannot read it
			}
			return c
		}
		for n--; n > 0 && buf[n] != '-'; n-- {
		}
	}
	return candidate{}
}

// scriptAfter returns the script that a tag goes on with, nil for none: four letters (RFC
// 5646, 2.2.3).
func scriptAfter(rest []byte) []byte {
	if len(rest) < 5 || len(rest) > 5 && rest[5] != '-' {
		return nil
	}
	for _, c := range rest[1:5] {
		if c < 'a' || c > 'z' {
			return nil
		}
	}
	return rest[1:5]
}

// cutByte returns what is before the first sep, and what is after it.
func cutByte[S ~string | ~[]byte](s S, sep byte) (before, after S) {
	for i := range len(s) {
		if s[i] == sep {
			return s[:i], s[i+1:]
		}
	}
	return s, s[len(s):]
}

// trim returns s without the white space around it (RFC 9110, 5.6.3).
func trim[S ~string | ~[]byte](s S) S {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// weight returns the weight in thousandths: 1000 if none is given, and 0 if what is given is not
// a weight.
func weight[S ~string | ~[]byte](params S) int {
	v := trim(params)
	switch {
	case len(v) == 0:
		return 1000
	case len(v) < 2 || v[0]|0x20 != 'q' || v[1] != '=':
		return 0
	}
	return Weight(v[2:])
}

// Weight returns what stands behind "q=" in thousandths (RFC 9110, 12.4.2), and 0 if that is not a
// weight.
func Weight[S ~string | ~[]byte](v S) int {
	if len(v) == 0 || len(v) > len("0.000") || v[0] != '0' && v[0] != '1' || len(v) > 1 && v[1] != '.' {
		return 0
	}
	w, scale := int(v[0]-'0')*1000, 100
	for i := 2; i < len(v); i++ {
		if v[i] < '0' || v[i] > '9' {
			return 0
		}
		w += int(v[i]-'0') * scale
		scale /= 10
	}
	if w > 1000 {
		return 0
	}
	return w
}

// candidate is what there is for who asks for a language.
type candidate struct {
	language *Language // nil: there is none, also where there is one for a shorter tag
	near     bool      // it is another language, which most readers of that one read
	script   string    // that it is written in, such as "cyrl"; "" if near, as that one may have any
}

// otherScript lists what is written in another script than the language that its first
// subtag names, though it does not say so, after the likely subtags of CLDR 48.
const otherScript = "sr-me"

// wanted returns what there is for each tag, in lower case, that visitors may
// ask for.
func wanted(byTag map[Tag]*Language, regions []regional) map[string]candidate {
	all := make(map[string]candidate)
	for _, l := range byTag {
		for _, name := range l.readBy {
			all[name] = candidate{language: l, near: true}
		}
	}
	written := func(l *Language) candidate {
		script, _ := l.rules.Script()
		return candidate{language: l, script: strings.ToLower(script.String())}
	}
	for tag, l := range byTag {
		first, _, _ := strings.Cut(tag, "-")
		if tag != "zh-TW" { // zh alone is simplified
			all[first] = written(l)
		}
		all[strings.ToLower(tag)] = written(l)
	}
	for _, r := range regions {
		first, _, _ := strings.Cut(r.tag, "-")
		all[first+"-"+strings.ToLower(r.region)] = written(r.Language)
	}
	for _, l := range byTag {
		for _, name := range l.names {
			all[name] = written(l)
		}
	}
	for tag := range strings.FieldsSeq(otherScript) {
		all[tag] = candidate{}
	}
	return all
}
