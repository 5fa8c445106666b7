package page

import "testing"

// BenchmarkAnswer is what the body of a queue answer costs.
func BenchmarkAnswer(b *testing.B) {
	for _, language := range []string{"en-US", "hi-IN"} {
		for kind, appendTo := range map[string]func(*Page, []byte, *State) []byte{"page": (*Page).AppendHTML, "JSON": (*Page).AppendJSON} {
			b.Run(kind+" "+language, func(b *testing.B) {
				p := newPage(b, Config{})
				in := inputOf(b, "fifo")
				in.AcceptLanguage = []byte(language)
				var s State
				var buf []byte
				b.ReportAllocs()
				for b.Loop() {
					p.Fill(&s, in)
					buf = appendTo(p, buf[:0], &s)
				}
				b.SetBytes(int64(len(buf)))
			})
		}
	}
}
