//go:build !race

package page

import (
	"testing"

	"github.com/ropeline/ropeline/httpfront/page/lang"
)

// TestAnswersAllocateNothing in any situation and language, beyond the buffer that
// the caller uses again.
func TestAnswersAllocateNothing(t *testing.T) {
	p := newPage(Config{Message: "Row A is sold out.\n<b>Sorry</b> & \"thanks\""})
	all := situations()
	var s State
	buf := make([]byte, 0, 16<<10)
	for _, l := range lang.All() {
		accept := []byte("xx, " + l.Tag() + ";q=0.9, en;q=0.5")
		for name, in := range all {
			in.AcceptLanguage = accept
			if n := testing.AllocsPerRun(5, func() {
				p.Fill(&s, in)
				buf = p.AppendHTML(buf[:0], &s)
				buf = p.AppendJSON(buf[:0], &s)
			}); n != 0 {
				t.Errorf("%s, %s: %v allocations", l.Tag(), name, n)
			}
		}
	}
}
