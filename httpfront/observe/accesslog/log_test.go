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
)

// inBubble runs f beside a Log that writes to a file, whose clock is that of the bubble. The
// returned messages are those told.
func inBubble(t *testing.T, f func(l *Log, path string, stop func())) (told string) {
	path := filepath.Join(t.TempDir(), "access.log")
	var messages bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		l := newLog(Config{Path: path, Logger: slog.New(slog.NewTextHandler(&messages, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := l.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		stop := func() {
			cancel()
			wg.Wait()
		}
		f(l, path, stop)
		stop()
	})
	return messages.String()
}

func newLog(cfg Config) *Log { return must(open(cfg, bufferSize)) }

func write(l *Log, target string) {
	e := someEntry()
	e.Target = []byte(target)
	l.Write(e)
}

// writeOne begins to write to a file, and ends after one line.
func writeOne(path, target string) {
	l := newLog(Config{Path: path})
	write(l, target)
	l.flush()
	l.close()
}

// targets returns the targets of the lines of a file.
func targets(path string) (all []string) {
	for line := range strings.Lines(string(must(os.ReadFile(path)))) {
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
	if got := strings.Join(targets(path), " "); got != want {
		t.Errorf("%s has %q, want %q", path, got, want)
	}
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
		if s := l.Stats(); s != (Stats{Lines: 2}) {
			t.Errorf("got %+v", s)
		}
		writeOne(path, "/3")
		expect(t, path, "/1 /2 /3")
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o007 != 0 {
			t.Errorf("others may read the file: %v, %v", info.Mode(), err)
		}
	})
	if told != "" {
		t.Errorf("told:\n%s", told)
	}
}

// TestRotation: what came before goes into the old file and what comes after into a new
// one, whether or not anybody asks for it.
func TestRotation(t *testing.T) {
	for _, asked := range []bool{true, false} {
		t.Run(fmt.Sprint("asked=", asked), func(t *testing.T) {
			inBubble(t, func(l *Log, path string, stop func()) {
				write(l, "/1")
				if err := os.Rename(path, path+".1"); err != nil {
					t.Fatal(err)
				}
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
				if s := l.Stats(); s != (Stats{Lines: 2}) {
					t.Errorf("got %+v", s)
				}
			})
		})
	}
}

// TestFileThatEndsWithinALine: a line is not joined to the half of another.
func TestFileThatEndsWithinALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte("203.0.113.7 - - [01/Mar"), 0o600); err != nil {
		t.Fatal(err)
	}
	writeOne(path, "/1")
	expect(t, path, "? /1")
}

// fakeFile is a disk that can be full, or slow.
type fakeFile struct {
	file
	bytes.Buffer
	write func(b []byte) (int, error)
}

// newDisk has a Log write to a disk.
func newDisk(t *testing.T, log io.Writer, buffer int) (*Log, *fakeFile) {
	l := must(open(Config{Path: filepath.Join(t.TempDir(), "log"), Logger: slog.New(slog.NewTextHandler(log, nil))}, buffer))
	l.close()
	disk := new(fakeFile)
	l.file = disk
	return l, disk
}

func (f *fakeFile) Write(b []byte) (int, error) { return f.write(b) }
func (f *fakeFile) Close() error                { return nil }

// TestDiskThatFails: lines are dropped and counted, an error is told once, and when the
// disk is well again each line stands by itself.
func TestDiskThatFails(t *testing.T) {
	var messages bytes.Buffer
	l, disk := newDisk(t, &messages, bufferSize)
	room := 150
	disk.write = func(b []byte) (int, error) {
		n, _ := disk.Buffer.Write(b[:min(len(b), room)])
		if room -= n; n < len(b) {
			return n, io.ErrShortWrite
		}
		return n, nil
	}
	for range 3 {
		write(l, "/lost")
		write(l, "/lost")
		l.flush()
	}
	if got := l.Stats(); got != (Stats{Lines: 1, Dropped: 5, Errors: 3}) {
		t.Errorf("got %+v of 6 lines, one of which found room", got)
	}
	room = 1 << 20
	write(l, "/after")
	l.flush()
	lines := strings.Split(strings.TrimSuffix(disk.String(), "\n"), "\n")
	if len(lines) != 3 || !strings.Contains(lines[2], `"GET /after HTTP/1.1"`) || len(fieldsOf(lines[2])) != 12 {
		t.Errorf("got %q", lines)
	}
	if n := strings.Count(messages.String(), "level="); n != 2 || !strings.Contains(messages.String(), "again") {
		t.Errorf("want one error, and one word when it was over:\n%s", &messages)
	}
}

// TestFileThatCannotBeOpened: while there can be no new file, the old one goes on, and that
// is told once.
func TestFileThatCannotBeOpened(t *testing.T) {
	var full atomic.Bool
	told := inBubble(t, func(l *Log, path string, stop func()) {
		real := l.open
		l.open = func(path string) (file, bool, error) {
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

// TestSlowDiskHoldsNobodyUp: while the disk takes nothing, lines wait in memory, then are
// dropped; no Write waits. The test would not end if one did.
func TestSlowDiskHoldsNobodyUp(t *testing.T) {
	const buffer = 64 << 10
	l, disk := newDisk(t, io.Discard, buffer)
	entered, release := make(chan struct{}), make(chan struct{})
	disk.write = func(b []byte) (int, error) {
		entered <- struct{}{}
		<-release
		return disk.Buffer.Write(b)
	}
	write(l, "/first")
	flushed := make(chan struct{})
	go func() { l.flush(); close(flushed) }()
	<-entered
	const many = 2000
	for range many {
		write(l, "/more")
	}
	if got := l.Stats(); got.Dropped == 0 || got.Dropped >= many || cap(l.buf) != buffer {
		t.Errorf("%d of %d lines were dropped, want some; the buffer has %d bytes", got.Dropped, many, cap(l.buf))
	}
	close(release)
	<-flushed
	go func() { <-entered }()
	l.flush()
	if got := l.Stats(); got.Lines+got.Dropped != many+1 || got.Lines < 2 {
		t.Errorf("got %+v of %d lines", got, many+1)
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

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{{}, {Path: filepath.Join(t.TempDir(), "none", "a")}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// must is for what a test sets up, and cannot do without.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
