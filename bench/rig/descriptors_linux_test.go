package rig

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestUsedUpDescriptors has a shell write to a new file each time: it fails while there is no descriptor left.
// The shell waits without a program, which would not find a descriptor to load its library with.
func TestUsedUpDescriptors(t *testing.T) {
	dir := t.TempDir()
	p, err := Start(t.Context(), Command{
		Name: "bash", Args: []string{"-c", `cd "$0" && exec 3<> <(:) && while read -rt 0.01 -u 3 || true; do { echo can > file && echo can; } 2>/dev/null || echo cannot; done`, dir},
		Log: filepath.Join(dir, "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	says := func(want string, until func()) {
		t.Helper()
		before := len(p.Log())
		if err := p.AwaitFunc(t.Context(), "says "+want, func(context.Context) bool {
			until()
			lines := strings.Fields(p.Log()[before:])
			return len(lines) > 2 && lines[len(lines)-1] == want
		}); err != nil {
			t.Fatal(err)
		}
	}
	says("can", func() {})
	giveBack, err := p.UseUpDescriptors()
	if err != nil {
		t.Fatal(err)
	}
	says("cannot", func() { p.UseUpDescriptors() }) // again: it may just have had the file open
	if err := giveBack(); err != nil {
		t.Fatal(err)
	}
	says("can", func() {})
}

// TestReaderOfALog has what a program says go through another one, which may stop for a while.
func TestReaderOfALog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := Start(t.Context(), Command{
		Name: "sh", Args: []string{"-c", "for i in 1 2 3; do echo loud $i; echo quiet $i; done"},
		Log: log, Reader: []string{"grep", "loud"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !p.EndedWithin(time.Minute) {
		t.Fatal("it does not end")
	}
	if got := p.Log(); got != "loud 1\nloud 2\nloud 3\n" {
		t.Errorf("the log has %q", got)
	}
}
