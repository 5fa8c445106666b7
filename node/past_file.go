package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
)

// Closed minutes lie in files, each with those of about an hour, one behind the other:
//
//	length (4) │ CRC-32C of the minute (4) │ minute │ length …
//
// Nothing is synced: what a crash of the machine takes is the last minutes of a picture that
// nobody decides by. The end of a file may be torn; what comes before that counts.

const (
	pastDir    = "history"
	pastFrames = 60       // in a file
	pastFiles  = 40       // a day, and what restarts and nodes that have left add; the oldest goes
	pastBytes  = 64 << 20 // in all files; the same
	pastQueue  = 16       // minutes that wait for the disk; what is more is lost

	frameHead = 8
)

// pastFile writes closed minutes down, off the loop: a disk may take its time.
type pastFile struct {
	root *os.Root
	log  *slog.Logger
	next chan []byte

	// Owned by who runs it.
	files  []pastPart // the oldest first
	out    *os.File   // the last of them; nil: it has to be opened
	frames int        // in it
	failed bool       // which was told
	lost   bool       // there is no directory: nothing is kept
	passed bool       // another node has all: nothing is to be left
}

// pastPart is one file.
type pastPart struct {
	number int
	size   int64
}

func (p pastPart) name() string { return fmt.Sprintf("%08d", p.number) }

// openPast opens the directory of history in a data directory and has take take up what is
// there, the oldest first.
func openPast(d *DataDir, take func([]byte) error, log *slog.Logger) (*pastFile, error) {
	path, err := d.Sub(pastDir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	p := &pastFile{root: root, log: log, next: make(chan []byte, pastQueue)}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n >= 0 && (pastPart{number: n}).name() == e.Name() {
			p.files = append(p.files, pastPart{number: n})
		}
	}
	slices.SortFunc(p.files, func(a, b pastPart) int { return a.number - b.number })
	for i := range p.files {
		p.frames, p.files[i].size = p.read(p.files[i].name(), take)
	}
	return p, nil
}

// openPast takes up what earlier starts have kept of what happened in rooms. A node whose
// disk does not have that goes on, and keeps nothing.
func (n *Node) openPast() *pastFile {
	p, err := openPast(n.cfg.Data, n.core.RestoreHistory, n.log)
	if err != nil {
		n.log.Warn("what happened in rooms cannot be read or kept; after a restart this node does not know it", "error", err)
		return &pastFile{log: n.log, next: make(chan []byte, pastQueue), lost: true}
	}
	return p
}

// read hands out the frames of a file up to the first that is not whole, and cuts off what
// comes from there on. It returns how many there are, and how long they are together.
func (p *pastFile) read(name string, take func([]byte) error) (frames int, size int64) {
	text, err := p.readAll(name)
	if err != nil {
		p.log.Warn("a part of what happened in rooms is lost", "file", name, "error", err)
		return pastFrames, 0 // another file is begun
	}
	rest := text
	for len(rest) > 0 {
		frame, after, ok := cutFrame(rest)
		if !ok {
			break
		}
		if err := take(frame); err != nil {
			p.log.Warn("a minute of what happened in rooms is lost", "file", name, "error", err)
		}
		rest = after
		frames++
	}
	size = int64(len(text) - len(rest))
	if len(rest) > 0 {
		p.log.Info("the end of what happened in rooms was torn, and is cut off", "file", name, "bytes", len(rest))
		if err := p.truncate(name, size); err != nil {
			p.log.Warn("the end of a file of history cannot be cut off", "file", name, "error", err)
			return pastFrames, size
		}
	}
	return frames, size
}

func (p *pastFile) readAll(name string) ([]byte, error) {
	f, err := p.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, pastBytes))
}

func (p *pastFile) truncate(name string, size int64) error {
	f, err := p.root.OpenFile(name, os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// cutFrame returns the first frame and what comes behind it. A frame that is cut short, or
// of which bytes are wrong, is none.
func cutFrame(b []byte) (frame, rest []byte, ok bool) {
	if len(b) < frameHead {
		return nil, nil, false
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if n == 0 || n > uint64(len(b)-frameHead) {
		return nil, nil, false
	}
	frame, rest = b[frameHead:frameHead+n], b[frameHead+n:]
	return frame, rest, crc32.Checksum(frame, castagnoli) == binary.BigEndian.Uint32(b[4:])
}

func appendPastFrame(dst, frame []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(frame)))
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(frame, castagnoli))
	return append(dst, frame...)
}

// keep has minutes written down. It does not wait; one goroutine calls it.
func (p *pastFile) keep(frames [][]byte) {
	for _, f := range frames {
		select {
		case p.next <- f:
		default: // the disk is minutes behind
		}
	}
}

// close ends run, once all is written. What another node has is removed: a new node that starts in this directory
// would tell it once more.
func (p *pastFile) close(passed bool) {
	p.passed = passed
	close(p.next)
}

// run writes what keep was given until close.
func (p *pastFile) run() {
	for frame := range p.next {
		if p.lost {
			continue
		}
		err := p.write(frame)
		if err != nil && !p.failed {
			p.log.Error("what happens in rooms cannot be kept; after a restart this node does not know it", "error", err)
		}
		if err == nil && p.failed {
			p.log.Info("what happens in rooms is kept again")
		}
		p.failed = err != nil
	}
	if p.out != nil {
		p.out.Close()
	}
	if p.root != nil {
		if p.passed {
			p.remove(len(p.files))
		}
		p.root.Close()
	}
}

// write appends a frame to the newest file, or leaves that as it was.
func (p *pastFile) write(frame []byte) (err error) {
	if n := len(p.files); n == 0 || p.frames >= pastFrames && p.files[n-1].size > 0 {
		p.begin()
	}
	part := &p.files[len(p.files)-1]
	if p.out == nil {
		if p.out, err = p.root.OpenFile(part.name(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
			return fmt.Errorf("open %s/%s: %w", pastDir, part.name(), err)
		}
	}
	n, err := p.out.Write(appendPastFrame(nil, frame))
	if err != nil {
		if p.out.Truncate(part.size) != nil { // what comes behind half a frame is not read
			p.frames = pastFrames
		}
		return fmt.Errorf("write %s/%s: %w", pastDir, part.name(), err)
	}
	part.size += int64(n)
	p.frames++
	return nil
}

// begin begins a file, and removes the oldest ones if there are too many.
func (p *pastFile) begin() {
	if p.out != nil {
		p.out.Close()
		p.out = nil
	}
	next := pastPart{}
	if n := len(p.files); n > 0 {
		next.number = p.files[n-1].number + 1
	}
	p.files, p.frames = append(p.files, next), 0
	for p.tooMany() {
		p.remove(1)
	}
}

// remove removes the n oldest files.
func (p *pastFile) remove(n int) {
	for _, f := range p.files[:n] {
		if err := p.root.Remove(f.name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.log.Warn("an old file of history cannot be removed", "file", f.name(), "error", err)
		}
	}
	p.files = p.files[n:]
}

func (p *pastFile) tooMany() bool {
	var size int64
	for _, f := range p.files {
		size += f.size
	}
	return len(p.files) > pastFiles || size > pastBytes && len(p.files) > 1
}
