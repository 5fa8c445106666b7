package node

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ropeline/ropeline/bench/tiers/single"
	"github.com/ropeline/ropeline/crdt"
)

// pastIn is a directory with history, as it is opened again and again.
type pastIn struct {
	t    *testing.T
	data string
	file *pastFile
}

// open returns what is there.
func (p *pastIn) open() (frames []string) {
	p.t.Helper()
	d, err := OpenDataDir(p.data, crdt.NodeID{})
	if err != nil {
		p.t.Fatal(err)
	}
	defer d.Close()
	p.file, err = openPast(d, func(b []byte) error { frames = append(frames, string(b)); return nil }, slog.New(slog.DiscardHandler))
	if err != nil {
		p.t.Fatal(err)
	}
	return frames
}

// write writes frames, and closes the directory.
func (p *pastIn) write(frames ...string) {
	p.t.Helper()
	for _, f := range frames {
		if err := p.file.write([]byte(f)); err != nil {
			p.t.Error(err)
		}
	}
	p.file.close(false)
	p.file.run()
}

func (p *pastIn) names() (names []string) {
	p.t.Helper()
	entries, err := os.ReadDir(filepath.Join(p.data, pastDir))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func minutesOf(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint("minute ", i))
	}
	return all
}

// TestPastIsKept over starts, in files of an hour each.
func TestPastIsKept(t *testing.T) {
	p := &pastIn{t: t, data: t.TempDir()}
	if got := p.open(); len(got) > 0 {
		t.Errorf("at first there is %q", got)
	}
	p.write(minutesOf(0, 50)...)
	if got := p.open(); !slices.Equal(got, minutesOf(0, 50)) {
		t.Errorf("after a start there is %q", got)
	}
	p.write(minutesOf(50, 130)...)
	if got := p.open(); !slices.Equal(got, minutesOf(0, 130)) || len(p.names()) != 3 {
		t.Errorf("after another there is %q in %q", got, p.names())
	}
	p.write()
}

// TestPastIsBounded: what is older than about a day goes, the oldest first.
func TestPastIsBounded(t *testing.T) {
	single.Goroutine(t)
	p := &pastIn{t: t, data: t.TempDir()}
	p.open()
	p.write(minutesOf(0, 5000)...)
	if got, n := p.open(), len(p.names()); n != pastFiles || got[len(got)-1] != "minute 4999" || len(got) < 24*60 {
		t.Errorf("%d files with %d minutes up to %q", n, len(got), got[len(got)-1])
	}
	p.write()
	large := string(bytes.Repeat([]byte{'x'}, pastBytes/100))
	p.open()
	for range 200 {
		if err := p.file.write([]byte(large)); err != nil {
			t.Fatal(err)
		}
	}
	size := int64(0)
	for _, f := range p.file.files {
		size += f.size
	}
	if size > pastBytes+pastFrames*int64(len(large)+frameHead) {
		t.Errorf("%d bytes are kept", size)
	}
	p.write()
}

// TestPastThatIsTorn: of a file that ends anywhere, whole minutes count, and later ones are
// read behind them; so it is where bytes are wrong, or nothing was written.
func TestPastThatIsTorn(t *testing.T) {
	whole := appendPastFrame(appendPastFrame(nil, []byte("one")), []byte("two"))
	first := len(appendPastFrame(nil, []byte("one")))
	for n := range len(whole) + 1 {
		p := &pastIn{t: t, data: t.TempDir()}
		p.open()
		p.write()
		path := filepath.Join(p.data, pastDir, pastPart{}.name())
		wrong := append(bytes.Clone(whole[:n]), make([]byte, n%5)...)
		if err := os.WriteFile(path, wrong, 0o600); err != nil {
			t.Fatal(err)
		}
		var want []string
		if n >= first {
			want = append(want, "one")
		}
		if n == len(whole) {
			want = append(want, "two")
		}
		if got := p.open(); !slices.Equal(got, want) {
			t.Fatalf("of %d bytes: got %q, want %q", n, got, want)
		}
		p.write("three")
		if got := p.open(); !slices.Equal(got, append(want, "three")) {
			t.Fatalf("of %d bytes and one minute more: got %q", n, got)
		}
		p.write()
	}
	for i := range first { // each of the first minute's
		p := &pastIn{t: t, data: t.TempDir()}
		p.open()
		p.write()
		wrong := bytes.Clone(whole)
		wrong[i] ^= 0x40
		if err := os.WriteFile(filepath.Join(p.data, pastDir, pastPart{}.name()), wrong, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := p.open(); len(got) > 0 {
			t.Fatalf("byte %d is wrong: got %q", i, got)
		}
		p.write()
	}
}

// TestPastWhoseDiskFails keeps what was there, and goes on when the disk does.
func TestPastWhoseDiskFails(t *testing.T) {
	p := &pastIn{t: t, data: t.TempDir()}
	p.open()
	if err := p.file.write([]byte("before")); err != nil {
		t.Fatal(err)
	}
	p.file.out.Close()
	block := filepath.Join(p.data, pastDir, pastPart{number: 1}.name())
	if err := os.Mkdir(block, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 * pastFiles {
		if err := p.file.write([]byte("lost")); err == nil {
			t.Fatal("a minute was taken")
		}
	}
	if err := os.Remove(block); err != nil {
		t.Fatal(err)
	}
	if err := p.file.write([]byte("after")); err != nil {
		t.Fatal(err)
	}
	p.write()
	if got := p.open(); !slices.Equal(got, []string{"before", "after"}) {
		t.Errorf("there is %q", got)
	}
	p.write()
}
