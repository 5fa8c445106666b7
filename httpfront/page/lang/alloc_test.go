//go:build !race

package lang

import (
	"testing"
	"time"
)

func TestNothingAllocates(t *testing.T) {
	var (
		at     = time.Unix(1_700_000_000, 0)
		accept = []byte("sr-Latn-RS,zh-HK;q=0.9,en-US;q=0.8,en;q=0.7,*;q=0.5")
		header = string(accept)
		buf    = make([]byte, 0, 512)
		taken  *Language
	)
	for _, tag := range []Tag{"en-US", "ru-RU", "ar-EG", "hi-IN", "zh-TW"} {
		l := Of(tag)
		title := l.Text(TitleInLine)
		for name, call := range map[string]func(){
			"AppendNumber":      func() { buf = l.AppendNumber(buf[:0], 1234567) },
			"AppendMinutes":     func() { buf = l.AppendMinutes(buf[:0], 3*1440+125) },
			"AppendRange":       func() { buf = l.AppendRange(buf[:0], 65, 4000) },
			"AppendRange, near": func() { buf = l.AppendRange(buf[:0], 10, 25) },
			"AppendTab":         func() { buf = l.AppendTab(buf[:0], 1234, title) },
			"AppendClock":       func() { buf = l.AppendClock(buf[:0], at) },
			"Of":                func() { taken = Of(tag) },
			"Match":             func() { taken = Match(header, tag) },
			"Match, bytes":      func() { taken = Match(accept, tag) },
			"Match, none":       func() { taken = Match("tlh,*", tag) },
		} {
			equal(t, string(tag)+": allocations of "+name, testing.AllocsPerRun(100, call), 0)
		}
	}
	if taken == nil {
		t.Error("nothing matched")
	}
}
