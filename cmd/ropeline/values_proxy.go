package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// originsValue is the servers of a site; each use of the flag adds to them.
type originsValue struct{ dst *[]upstream.Origin }

func (v originsValue) String() string {
	if v.dst == nil {
		return ""
	}
	words := make([]string, len(*v.dst))
	for i, o := range *v.dst {
		words[i] = o.Text()
	}
	return strings.Join(words, ",")
}
func (v originsValue) Type() string { return "url,..." }
func (v originsValue) clear()       { *v.dst = nil }
func (v originsValue) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		o, err := upstream.ParseOrigin(one)
		if err != nil {
			return err
		}
		*v.dst = append(*v.dst, o)
	}
	return nil
}

// methodsValue is a list of methods of HTTP.
type methodsValue struct{ dst *[]string }

func (v methodsValue) String() string {
	if v.dst == nil {
		return ""
	}
	return strings.Join(*v.dst, ",")
}
func (v methodsValue) Type() string { return "word,..." }
func (v methodsValue) clear()       { *v.dst = nil }
func (v methodsValue) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		one = strings.TrimSpace(one)
		if !httpfront.IsMethod(one) {
			return fmt.Errorf("%q is not allowed: %s, such as GET or PROPFIND", one, httpfront.MethodRule)
		}
		*v.dst = append(*v.dst, one)
	}
	return nil
}

// sizeValue is a number of bytes.
type sizeValue struct{ dst *int64 }

// sizeUnits are the letters that may follow a number of bytes, greatest first.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

func (v sizeValue) String() string {
	if v.dst == nil {
		return ""
	}
	for _, u := range sizeUnits {
		if n := *v.dst; n%u.bytes == 0 && n >= u.bytes {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return "0"
}
func (v sizeValue) Type() string { return "size" }
func (v sizeValue) Set(s string) error {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 62)
		if err != nil || n > 1<<50/uint64(u.bytes) {
			break
		}
		*v.dst = int64(n) * u.bytes
		return nil
	}
	return fmt.Errorf("%q is not allowed: a number of bytes up to 1024TiB, perhaps with KiB, MiB, GiB or TiB behind it, such as 10MiB; 0 is no limit", s)
}

// statusesValue is a list of status codes and ranges of them.
type statusesValue struct{ dst *[]upstream.StatusRange }

func (v statusesValue) String() string {
	if v.dst == nil {
		return ""
	}
	words := make([]string, len(*v.dst))
	for i, r := range *v.dst {
		if words[i] = strconv.Itoa(r.First); r.Last != r.First {
			words[i] += "-" + strconv.Itoa(r.Last)
		}
	}
	return strings.Join(words, ",")
}
func (v statusesValue) Type() string { return "code,..." }
func (v statusesValue) clear()       { *v.dst = nil }
func (v statusesValue) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		one = strings.TrimSpace(one)
		first, last, ok := strings.Cut(one, "-")
		if !ok {
			last = first
		}
		a, errA := strconv.Atoi(first)
		b, errB := strconv.Atoi(last)
		if errA != nil || errB != nil || a < 200 || b > 599 || a > b {
			return fmt.Errorf("%q is not allowed: a code from 200 to 599 or a range of them, such as 204 or 200-299", one)
		}
		*v.dst = append(*v.dst, upstream.StatusRange{First: a, Last: b})
	}
	return nil
}

// requestPathValue is a path with perhaps a query.
type requestPathValue struct{ dst *string }

func (v requestPathValue) String() string {
	if v.dst == nil {
		return ""
	}
	return *v.dst
}
func (v requestPathValue) Type() string { return "path" }
func (v requestPathValue) Set(s string) error {
	path, _, _ := strings.Cut(s, "?")
	if checkPath(path) != nil || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' }) {
		return fmt.Errorf("%q is not allowed: a path that starts with /, perhaps with a query, without spaces and in ASCII, such as /healthz", s)
	}
	*v.dst = s
	return nil
}
