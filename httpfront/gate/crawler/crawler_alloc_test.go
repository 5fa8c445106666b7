package crawler

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
)

func TestIsDoesNotAllocate(t *testing.T) {
	c := must.Do(New(Config{Resolver: internet()}))
	c.known.Add(question{google, 0}, answer{true, time.Now().Add(time.Hour)})
	browser, crawler := []byte("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36"), []byte(bot)
	if n := testing.AllocsPerRun(100, func() {
		if c.Is(browser, google) || !c.Is(crawler, google) {
			t.Fatal("wrong")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
