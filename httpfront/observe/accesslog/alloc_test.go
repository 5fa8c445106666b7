//go:build !race

package accesslog

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/ropeline/ropeline/bench/must"
)

func TestWriteAllocatesNothing(t *testing.T) {
	l := must.Do(New(filepath.Join(t.TempDir(), "log"), slog.Default()))
	e := someEntry()
	e.Referer = []byte("\"ä\n")
	// So many of these fill the buffer, so dropping is tried as well.
	if n := testing.AllocsPerRun(bufferSize/100, func() { l.Write(e) }); n != 0 || l.Stats().Dropped == 0 {
		t.Errorf("%v allocations, want 0; %d lines were dropped as the buffer was full", n, l.Stats().Dropped)
	}
}
