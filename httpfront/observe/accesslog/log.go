package accesslog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Config says where a Log writes. Path is required.
type Config struct {
	// Path is the file that lines are appended to. It is made if it is not there, readable
	// by its owner and group only. Its directory must be there. [Stdout] is the standard
	// output.
	Path string
	// Logger takes what goes wrong: once, until it is right again. The default is
	// slog.Default().
	Logger *slog.Logger
}

// Stdout is the path of the standard output.
const Stdout = "-"

// bufferSize is how many bytes wait for the disk at most; more memory outlasts a slower disk. Twice
// as much may be used.
const bufferSize = 1 << 20

// flushEvery is how long a line waits for others at most. A look at whether the file was
// renamed is as often.
const flushEvery = time.Second

// Stats are counters since New.
type Stats struct {
	Lines   uint64 // written to the file
	Dropped uint64 // not written, since the buffer was full or the file could not be written
	Errors  uint64 // times that the file could not be opened or written
}

// Log is an access log in a file. Write, Reopen and Stats may be called by any goroutine;
// Run has to run for anything to be written.
type Log struct {
	cfg     Config
	lines   atomic.Uint64
	dropped atomic.Uint64
	errors  atomic.Uint64
	full    chan struct{} // holds one: the buffer is half full
	reopen  chan struct{} // holds one: the file shall be opened anew

	mu  sync.Mutex // guards the following; held for as long as a line takes
	buf []byte     // lines that Run has not taken yet

	// Owned by Run.
	file  file
	spare []byte // an empty buffer, to be exchanged for buf
	torn  bool   // the file ends within a line
	open  func(path string) (f file, torn bool, err error)

	// The last attempt failed, which was told.
	notOpened, notWritten bool
}

// file is what Log needs of *os.File.
type file interface {
	io.WriteCloser
	Stat() (os.FileInfo, error)
}

// New opens the file. Run has to be called then, which closes it.
func New(cfg Config) (*Log, error) { return open(cfg, bufferSize) }

func open(cfg Config, buffer int) (*Log, error) {
	if cfg.Path == "" {
		return nil, errors.New("access log: no path given")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	l := &Log{
		cfg: cfg, full: make(chan struct{}, 1), reopen: make(chan struct{}, 1), open: openFile,
		buf: make([]byte, 0, buffer), spare: make([]byte, 0, buffer),
	}
	var err error
	if l.file, l.torn, err = l.open(cfg.Path); err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	return l, nil
}

// openFile reports whether the file ends within a line, as it does after a crash.
func openFile(path string) (_ file, torn bool, err error) {
	if path == Stdout {
		return stdout{os.Stdout}, false, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return nil, false, err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		var last [1]byte
		_, err := f.ReadAt(last[:], info.Size()-1)
		torn = err != nil || last[0] != '\n'
	}
	return f, torn, nil
}

// stdout is closed by nobody: others may write to it.
type stdout struct{ *os.File }

// Close does nothing.
func (stdout) Close() error { return nil }

// Write takes the line of a request that has ended, or drops and counts it if the buffer
// is full. It does not wait for the disk, nor keep e.
func (l *Log) Write(e *Entry) {
	l.mu.Lock()
	before := len(l.buf)
	if cap(l.buf)-before < MaxLine && !l.fitsLocked(e) {
		l.mu.Unlock()
		l.dropped.Add(1)
		return
	}
	l.buf = AppendLine(l.buf, e)
	half := cap(l.buf) / 2
	wake := before < half && len(l.buf) >= half
	l.mu.Unlock()
	if wake {
		poke(l.full)
	}
}

// fitsLocked reports whether a line fits behind the others, if each of its bytes has to be
// escaped.
func (l *Log) fitsLocked(e *Entry) bool {
	text := len(e.Method) + len(e.Target) + len(e.Protocol) + len(e.Referer) + len(e.Agent) + len(e.Room) + len(e.Decision)
	return min(4*text+256, MaxLine) <= cap(l.buf)-len(l.buf)
}

// Reopen has Run close the file and open the one that has its name then, as is wanted after
// a rotation. It does not wait for that.
func (l *Log) Reopen() { poke(l.reopen) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Stats returns what became of lines so far.
func (l *Log) Stats() Stats {
	return Stats{l.lines.Load(), l.dropped.Load(), l.errors.Load()}
}

// Run writes lines to the file until ctx ends, and what is left then, for which it waits as long as the file
// does. It returns an error if the file cannot be closed; that lines cannot be written is told and counted, and
// tried again with the next ones.
func (l *Log) Run(ctx context.Context) error {
	tick := time.Tick(flushEvery)
	for {
		select {
		case <-ctx.Done():
			l.flush()
			if err := l.close(); err != nil {
				return fmt.Errorf("access log: %w", err)
			}
			return nil
		case <-l.full:
			l.flush()
		case <-l.reopen:
			l.flush() // what came before belongs to the old file
			l.openAnew()
		case <-tick:
			l.flush()
			if l.moved() {
				l.openAnew()
			}
		}
	}
}

// flush writes what is in the buffer. Lines that the file does not take are dropped: kept,
// they would have later ones dropped instead.
func (l *Log) flush() {
	l.mu.Lock()
	lines := l.buf
	l.buf, l.spare = l.spare, nil
	l.mu.Unlock()
	defer func() { l.spare = lines[:0] }()
	if len(lines) == 0 {
		return
	}
	total := uint64(bytes.Count(lines, []byte{'\n'}))
	if l.file == nil && !l.openAnew() {
		l.dropped.Add(total)
		return
	}
	if l.torn {
		// A new line after half a line, so that none is taken for a part of another.
		if _, err := l.file.Write([]byte{'\n'}); err != nil {
			l.dropped.Add(total)
			l.failed(&l.notWritten, "written", err)
			return
		}
		l.torn = false
	}
	n, err := l.file.Write(lines)
	whole := uint64(bytes.Count(lines[:n], []byte{'\n'}))
	l.lines.Add(whole)
	if err != nil {
		l.torn = n > 0 && lines[n-1] != '\n'
		l.dropped.Add(total - whole)
		l.failed(&l.notWritten, "written", err)
		return
	}
	l.mended(&l.notWritten, "written")
}

// moved reports whether another file, or none, has the name now.
func (l *Log) moved() bool {
	if l.file == nil {
		return true
	}
	if l.cfg.Path == Stdout {
		return false
	}
	mine, err := l.file.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(l.cfg.Path)
	return err != nil || !os.SameFile(mine, named)
}

// openAnew opens the file that has the name now, and closes the one that had it. If there
// can be none, it goes on with the old one. It reports whether there is one.
func (l *Log) openAnew() bool {
	f, torn, err := l.open(l.cfg.Path)
	if err != nil {
		l.failed(&l.notOpened, "opened", err)
		return l.file != nil
	}
	l.mended(&l.notOpened, "opened")
	if err := l.close(); err != nil {
		l.errors.Add(1)
		l.cfg.Logger.Warn("the old access log cannot be closed", "file", l.cfg.Path, "error", err)
	}
	l.file, l.torn = f, torn
	return true
}

func (l *Log) close() error {
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}

// failed counts an error, and tells the first of a row.
func (l *Log) failed(told *bool, what string, err error) {
	l.errors.Add(1)
	if !*told {
		l.cfg.Logger.Error("the access log cannot be "+what+"; it is tried again every second, and lines are dropped meanwhile if there is no old file to take them",
			"file", l.cfg.Path, "error", err)
	}
	*told = true
}

func (l *Log) mended(told *bool, what string) {
	if *told {
		l.cfg.Logger.Info("the access log can be "+what+" again", "file", l.cfg.Path, "dropped_lines", l.dropped.Load())
	}
	*told = false
}
