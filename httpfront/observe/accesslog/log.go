package accesslog

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/httpfront/observe/sink"
)

// Stdout is the path of the standard output.
const Stdout = "-"

// bufferSize is how many bytes wait for the disk at most; more memory outlasts a slower disk. Twice
// as much may be used.
const bufferSize = 1 << 20

// flushEvery is how long a line waits for others at most, and for a look at whether the file was
// renamed.
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
	lines *sink.Sink
	to    *appender

	mu   sync.Mutex // guards the following; held for as long as a line takes
	line []byte
}

// New opens a file that lines are appended to. It is made if it is not there, readable by its owner
// and group only. Its directory must be there. [Stdout] is the standard output. Logger takes what
// goes wrong: once, until it is right again. Run has to be called then, which closes the file.
func New(path string, logger *slog.Logger) (*Log, error) {
	to := &appender{path: path, logger: logger, open: openFile}
	var err error
	if to.file, to.torn, err = to.open(path); err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	lines := sink.New(to, bufferSize, flushEvery)
	to.dropped = lines.Dropped
	return &Log{lines: lines, to: to, line: make([]byte, 0, MaxLine)}, nil
}

// Write takes the line of a request that has ended, or drops and counts it if the buffer
// is full. It does not wait for the disk, nor keep e.
func (l *Log) Write(e *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = AppendLine(l.line[:0], e)
	l.lines.Write(l.line)
}

// Reopen has Run write what there is, close the file and open the one that has its name then, if it
// is another, as is wanted after a rotation. It does not wait for that.
func (l *Log) Reopen() { l.lines.Flush() }

// Stats returns what became of lines so far.
func (l *Log) Stats() Stats {
	return Stats{l.lines.Written(), l.lines.Dropped(), l.to.errors.Load()}
}

// Run writes lines to the file until ctx ends, and what is left then, for which it waits as long as the file
// does. It returns an error if the file cannot be closed; that lines cannot be written is told and counted, and
// tried again with the next ones.
func (l *Log) Run(ctx context.Context) error {
	go l.lines.Run()
	<-ctx.Done()
	l.lines.Close(math.MaxInt64)
	if err := l.to.file.Close(); err != nil {
		return fmt.Errorf("access log: %w", err)
	}
	return nil
}

// appender appends lines to the file that has a name. Its goroutine is that of the sink.
type appender struct {
	path    string
	logger  *slog.Logger
	dropped func() uint64 // lines so far
	errors  atomic.Uint64

	file file
	torn bool // the file ends within a line
	open func(path string) (f file, torn bool, err error)

	// The last attempt failed, which was told.
	notOpened, notWritten bool
}

// file is what an appender needs of *os.File.
type file interface {
	io.WriteCloser
	Stat() (os.FileInfo, error)
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

// Write appends lines, if there are any, and looks whether the file was renamed then: what came
// before belongs to the old one. Lines that the file does not take are dropped: kept, they would
// have later ones dropped instead.
func (a *appender) Write(lines []byte) (n int, err error) {
	if len(lines) > 0 {
		if n, err = a.append(lines); err != nil {
			a.failed(&a.notWritten, "written", err)
		} else {
			a.mended(&a.notWritten, "written")
		}
	}
	if a.moved() {
		a.openAnew()
	}
	return n, err
}

func (a *appender) append(lines []byte) (n int, err error) {
	if a.torn {
		// A new line after half a line, so that none is taken for a part of another.
		if _, err := a.file.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
	}
	n, err = a.file.Write(lines)
	a.torn = n > 0 && lines[n-1] != '\n'
	return n, err
}

// moved reports whether another file, or none, has the name now.
func (a *appender) moved() bool {
	if a.path == Stdout {
		return false
	}
	mine, err := a.file.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(a.path)
	return err != nil || !os.SameFile(mine, named)
}

// openAnew opens the file that has the name now, and closes the one that had it. If there
// can be none, it goes on with the old one.
func (a *appender) openAnew() {
	f, torn, err := a.open(a.path)
	if err != nil {
		a.failed(&a.notOpened, "opened", err)
		return
	}
	a.mended(&a.notOpened, "opened")
	if err := a.file.Close(); err != nil {
		a.errors.Add(1)
		a.logger.Warn("the old access log cannot be closed", "file", a.path, "error", err)
	}
	a.file, a.torn = f, torn
}

// failed counts an error, and tells the first of a row.
func (a *appender) failed(told *bool, what string, err error) {
	a.errors.Add(1)
	if !*told {
		a.logger.Error("the access log cannot be "+what+"; it is tried again every second, and lines are dropped meanwhile if there is no old file to take them",
			"file", a.path, "error", err)
	}
	*told = true
}

func (a *appender) mended(told *bool, what string) {
	if *told {
		a.logger.Info("the access log can be "+what+" again", "file", a.path, "dropped_lines", a.dropped())
	}
	*told = false
}
