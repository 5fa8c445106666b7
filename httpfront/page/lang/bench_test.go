package lang

import (
	"strings"
	"testing"
)

func BenchmarkMatch(b *testing.B) {
	for _, h := range []struct{ name, accept string }{
		{"one", "de-DE"},
		{"browser", "de-AT,de;q=0.9,en-US;q=0.8,en;q=0.7"},
		{"unknown", "tlh-Latn-US,x-pig-latin;q=0.9,*;q=0.5"},
		{"hostile", strings.Repeat("a-b-c-d-e-f-g-h-i-j-k-l-m-n-o-p-q,", 1000)},
	} {
		b.Run(h.name, func(b *testing.B) {
			accept := []byte(h.accept)
			b.ReportAllocs()
			for b.Loop() {
				Match(accept, English)
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	buf := make([]byte, 0, 512)
	for _, tag := range []Tag{"en-US", "ru-RU", "ar-EG"} {
		l := Of(tag)
		title := l.Text(TitleInLine)
		for _, c := range []struct {
			name string
			call func()
		}{
			{"number", func() { buf = l.AppendNumber(buf[:0], 1234567) }},
			{"minutes", func() { buf = l.AppendMinutes(buf[:0], 125) }},
			{"range", func() { buf = l.AppendRange(buf[:0], 45, 90) }},
			{"tab", func() { buf = l.AppendTab(buf[:0], 1234, title) }},
		} {
			b.Run(tag+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c.call()
				}
			})
		}
	}
}

// BenchmarkLoad is what the first call of a process takes.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, _, err := load(files); err != nil {
			b.Fatal(err)
		}
	}
}
