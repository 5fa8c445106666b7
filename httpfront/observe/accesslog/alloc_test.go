//go:build !race

package accesslog

import (
	"path/filepath"
	"testing"
)

func TestWriteAllocatesNothing(t *testing.T) {
	l := must(open(Config{Path: filepath.Join(t.TempDir(), "log")}, 64<<10))
	e := someEntry()
	e.Referer = []byte("\"ä\n")
	// A thousand of these fill the buffer, so dropping is tried as well.
	if n := testing.AllocsPerRun(1000, func() { l.Write(e) }); n != 0 || l.Stats().Dropped == 0 {
		t.Errorf("%v allocations, want 0; %d lines were dropped as the buffer was full", n, l.Stats().Dropped)
	}
}
