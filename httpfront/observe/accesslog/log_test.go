package accesslog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/bench/must"
)

// inBubble runs f beside a Log that writes to a file, whose clock is that of the bubble. The
// returned messages are those told.
func inBubble(t *testing.T, f func(l *Log, path string, stop func())) (told string) {
	path := filepath.Join(t.TempDir(), "access.log")
	var messages bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		l := must.Do(New(path, slog.New(slog.NewTextHandler(&messages, nil))))
		f(l, path, must.Run(t, l.Run))
	})
	return messages.String()
}

func write(l *Log, target string) {
	e := someEntry()
	e.Target = []byte(target)
	l.Write(e)
}

// writeOne begins to write to a file, and ends after one line.
func writeOne(t *testing.T, path, target string) {
	l := must.Do(New(path, slog.Default()))
	write(l, target)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Run(ctx); err != nil {
		t.Error(err)
	}
}

// targets returns the targets of the lines of a file.
func targets(path string) (all []string) {
	for line := range strings.Lines(string(must.Do(os.ReadFile(path)))) {
		if f := fieldsOf(line); len(f) == 12 {
			all = append(all, strings.Fields(f[4])[1])
		} else {
			all = append(all, "?")
		}
	}
	return all
}

// expect expects lines with these targets in a file.
func expect(t *testing.T, path, want string) {
	t.Helper()
	equal(t, path, strings.Join(targets(path), " "), want)
}

// TestLinesAreWritten: within a second, or when Run ends, and behind what there was.
func TestLinesAreWritten(t *testing.T) {
	told := inBubble(t, func(l *Log, path string, stop func()) {
		write(l, "/1")
		time.Sleep(flushEvery + 1)
		synctest.Wait()
		expect(t, path, "/1")
		write(l, "/2")
		stop()
		expect(t, path, "/1 /2")
		equal(t, "stats", l.Stats(), Stats{Lines: 2})
		writeOne(t, path, "/3")
		expect(t, path, "/1 /2 /3")
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o007 != 0 {
			t.Errorf("others may read the file: %v, %v", info.Mode(), err)
		}
	})
	equal(t, "told", told, "")
}

// TestRotation: what came before goes into the old file and what comes after into a new
// one, whether or not anybody asks for it.
func TestRotation(t *testing.T) {
	for _, asked := range []bool{true, false} {
		t.Run(fmt.Sprint("asked=", asked), func(t *testing.T) {
			inBubble(t, func(l *Log, path string, stop func()) {
				write(l, "/1")
				must.OK(os.Rename(path, path+".1"))
				if asked {
					l.Reopen()
				} else {
					time.Sleep(flushEvery + 1)
				}
				synctest.Wait()
				write(l, "/2")
				stop()
				expect(t, path+".1", "/1")
				expect(t, path, "/2")
				equal(t, "stats", l.Stats(), Stats{Lines: 2})
			})
		})
	}
}

// TestFileThatEndsWithinALine: a line is not joined to the half of another.
func TestFileThatEndsWithinALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	must.OK(os.WriteFile(path, []byte("203.0.113.7 - - [01/Mar"), 0o600))
	writeOne(t, path, "/1")
	expect(t, path, "? /1")
}

// onDisk runs f beside a Log whose disk can be full, or slow. flush has what there is written.
func onDisk(t *testing.T, disk func(b []byte) (int, error), f func(l *Log, flush func())) (told string) {
	return inBubble(t, func(l *Log, _ string, stop func()) {
		l.to.file = fakeFile{l.to.file, disk}
		f(l, func() {
			l.Reopen()
			synctest.Wait()
		})
	})
}

type fakeFile struct {
	file
	write func(b []byte) (int, error)
}

func (f fakeFile) Write(b []byte) (int, error) { return f.write(b) }

// TestDiskThatFails: lines are dropped and counted, an error is told once, and when the
// disk is well again each line stands by itself.
func TestDiskThatFails(t *testing.T) {
	room := 150
	var had []byte
	told := onDisk(t, func(b []byte) (int, error) {
		n := min(len(b), room)
		had = append(had, b[:n]...)
		if room -= n; n < len(b) {
			return n, io.ErrShortWrite
		}
		return n, nil
	}, func(l *Log, flush func()) {
		for range 3 {
			write(l, "/lost")
			write(l, "/lost")
			flush()
		}
		equal(t, "stats, one line having found room", l.Stats(), Stats{Lines: 1, Dropped: 5, Errors: 3})
		room = 1 << 20
		write(l, "/after")
		flush()
	})
	lines := strings.Split(strings.TrimSuffix(string(had), "\n"), "\n")
	if len(lines) != 3 || !strings.Contains(lines[2], `"GET /after HTTP/1.1"`) || len(fieldsOf(lines[2])) != 12 {
		t.Errorf("got %q", lines)
	}
	if n := strings.Count(told, "level="); n != 2 || !strings.Contains(told, "again") {
		t.Errorf("want one error, and one word when it was over:\n%s", told)
	}
}

// TestSlowDiskHoldsNobodyUp: while the disk takes nothing, lines wait in memory, then are
// dropped; no Write waits. The test would not end if one did.
func TestSlowDiskHoldsNobodyUp(t *testing.T) {
	var release chan struct{} // of the bubble
	onDisk(t, func(b []byte) (int, error) {
		<-release
		return len(b), nil
	}, func(l *Log, flush func()) {
		release = make(chan struct{})
		write(l, "/first")
		flush()
		const many = bufferSize / 100
		for range many {
			write(l, "/more")
		}
		if got := l.Stats(); got.Dropped == 0 || got.Dropped >= many {
			t.Errorf("%d of %d lines were dropped, want some", got.Dropped, many)
		}
		close(release)
		flush()
		if got := l.Stats(); got.Lines+got.Dropped != many+1 || got.Lines < 2 {
			t.Errorf("got %+v of %d lines", got, many+1)
		}
	})
}

// TestFileThatCannotBeOpened: while there can be no new file, the old one goes on, and that
// is told once.
func TestFileThatCannotBeOpened(t *testing.T) {
	var full atomic.Bool
	told := inBubble(t, func(l *Log, path string, stop func()) {
		real := l.to.open
		l.to.open = func(path string) (file, bool, error) {
			if full.Load() {
				return nil, false, errors.New("no more files")
			}
			return real(path)
		}
		full.Store(true)
		os.Rename(path, path+".1")
		for range 5 {
			write(l, "/old")
			time.Sleep(flushEvery)
			synctest.Wait()
		}
		full.Store(false)
		time.Sleep(flushEvery)
		synctest.Wait()
		write(l, "/new")
		stop()
		expect(t, path+".1", "/old /old /old /old /old")
		expect(t, path, "/new")
		if s := l.Stats(); s.Lines != 6 || s.Dropped != 0 || s.Errors < 4 {
			t.Errorf("got %+v", s)
		}
	})
	if n := strings.Count(told, "level="); n != 2 {
		t.Errorf("want one error, and one word when it was over:\n%s", told)
	}
}

// TestLinesOfManyGoroutinesAreWhole: none is split, none is lost.
func TestLinesOfManyGoroutinesAreWhole(t *testing.T) {
	inBubble(t, func(l *Log, path string, stop func()) {
		var writers sync.WaitGroup
		const each, many = 500, 4
		for n := range many {
			writers.Go(func() {
				for i := range each {
					write(l, fmt.Sprintf("/%d/%d", n, i))
				}
			})
		}
		writers.Wait()
		stop()
		got := targets(path)
		different := slices.Compact(slices.Sorted(slices.Values(got)))
		if len(got) != each*many || len(different) != len(got) || slices.Contains(got, "?") {
			t.Errorf("%d lines, %d of them different, want %d", len(got), len(different), each*many)
		}
	})
}

func TestPathIsChecked(t *testing.T) {
	for _, path := range []string{"", filepath.Join(t.TempDir(), "none", "a")} {
		if _, err := New(path, slog.Default()); err == nil {
			t.Errorf("%q is taken", path)
		}
	}
}

// equal fails the test unless got is want.
func equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}
