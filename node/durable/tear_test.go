package durable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const (
	pageSize     = 4096
	sectorSize   = 512
	metaPages    = 2
	freelistFlag = 0x10 // of a page that lists free ones
)

// commitImages commits random batches to a file and returns what the file was before
// and after each, and what it then held.
type image struct {
	before, after []byte
	was, is       []string
}

func commitImages(t *testing.T, rng *rand.Rand, rounds int) []image {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store")
	f := openFile(t, path)
	read := func() []byte {
		// The file is grown ahead; what follows the pages in use is zero.
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b[:min(len(b), 512<<10)]
	}
	var images []image
	for round := range rounds {
		var batch []Write
		for range 1 + rng.IntN(30) {
			w := Write{fmt.Sprint("o", rng.IntN(3)), fmt.Sprint("k", rng.IntN(80)), nil}
			if rng.IntN(4) > 0 {
				w.Value = bytes.Repeat([]byte{byte(round + 1)}, rng.IntN(600))
			}
			batch = append(batch, w)
		}
		img := image{before: read(), was: content(t, f)}
		commit(t, f, batch...)
		img.after, img.is = read(), content(t, f)
		images = append(images, img)
	}
	return images
}

// changed returns the pages that differ.
func (m image) changed() (pages []int) {
	for p := 0; p*pageSize < len(m.after); p++ {
		if at := p * pageSize; at >= len(m.before) || !bytes.Equal(m.before[at:at+pageSize], m.after[at:at+pageSize]) {
			pages = append(pages, p)
		}
	}
	return pages
}

// old returns the file as it was, as long as it is.
func (m image) old() []byte {
	b := make([]byte, len(m.after))
	copy(b, m.before)
	return b
}

// reopen returns what a store in a file of this content holds.
func reopen(t *testing.T, dir string, b []byte) ([]string, error) {
	t.Helper()
	path := filepath.Join(dir, "torn")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	all := content(t, f)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return all, nil
}

// TestFileAfterACrashThatTearsPages makes the files that a crash may leave in the
// middle of a commit: any sectors of the data pages before they were synced, and
// after that any sectors of the page that makes them count.
func TestFileAfterACrashThatTearsPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	dir := t.TempDir()
	states, pages, last, want := 0, 12, 6, 200
	if testing.Short() {
		pages, last, want = pages/4, last/3, want/4
	}
	for round, m := range commitImages(t, rng, 12) {
		for range pages {
			torn := m.old()
			for _, p := range m.changed() {
				if p < metaPages {
					continue
				}
				for s := p * pageSize; s < (p+1)*pageSize; s += sectorSize {
					if rng.IntN(2) == 0 {
						copy(torn[s:s+sectorSize], m.after[s:])
					}
				}
			}
			if got, err := reopen(t, dir, torn); err != nil || !slices.Equal(got, m.was) {
				t.Fatalf("round %d: data pages were torn, and the file holds %d entries (%v), not the %d of before", round, len(got), err, len(m.was))
			}
			states++
		}
		for range last {
			torn := bytes.Clone(m.after)
			for p := range metaPages {
				// Not even a sector is taken to be whole.
				cut := p*pageSize + rng.IntN(200)
				copy(torn[cut:(p+1)*pageSize], m.before[cut:])
			}
			got, err := reopen(t, dir, torn)
			if err != nil || !slices.Equal(got, m.was) && !slices.Equal(got, m.is) {
				t.Fatalf("round %d: the last page was torn, and the file holds %d entries (%v), neither the %d of before nor the %d of after", round, len(got), err, len(m.was), len(m.is))
			}
			states++
		}
	}
	if states < want {
		t.Errorf("only %d states were tried", states)
	}
}

// TestFileThatLostAPageIsRefused puts single pages back to what they were, which a
// disk does that acknowledges what it has not written: their checksums are right,
// and yet the file is not what was confirmed. The list of free pages is left out:
// nothing that was confirmed is in it.
func TestFileThatLostAPageIsRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	dir := t.TempDir()
	tried, refused := 0, 0
	for round, m := range commitImages(t, rng, 12) {
		for _, p := range m.changed() {
			at := p * pageSize
			if p < metaPages || binary.LittleEndian.Uint16(m.after[at+8:])&freelistFlag != 0 {
				continue
			}
			torn := bytes.Clone(m.after)
			copy(torn[at:at+pageSize], m.old()[at:])
			got, err := reopen(t, dir, torn)
			tried++
			switch {
			case errors.Is(err, ErrCorrupt):
				refused++
			case err != nil:
				t.Errorf("round %d, page %d: refused without saying why: %v", round, p, err)
			case !slices.Equal(got, m.is):
				t.Errorf("round %d, page %d: a file without it was taken", round, p)
			}
		}
	}
	if tried < 40 || refused < tried/2 {
		t.Errorf("%d pages tried, %d refused", tried, refused)
	}
}

// TestDamagedFilesAreRefused flips bits and cuts files.
func TestDamagedFilesAreRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	dir := t.TempDir()
	images := commitImages(t, rng, 12)
	m := images[len(images)-1]
	files := 150
	if testing.Short() {
		files /= 4
	}
	for i := range files {
		b := bytes.Clone(m.after)
		what := "bits were flipped"
		switch i % 3 {
		case 0:
			b = b[:rng.IntN(20*pageSize)]
			what = fmt.Sprintf("cut to %d bytes", len(b))
		case 1:
			at := rng.IntN(20 * pageSize)
			for j := range b[at:min(at+64, len(b))] {
				b[at+j] ^= byte(1 + rng.IntN(255))
			}
		case 2:
			at := rng.IntN(20 * pageSize)
			b[at] ^= 1 << rng.IntN(8)
		}
		if len(b) == 0 {
			continue // a crash leaves this when it makes the file
		}
		got, err := reopen(t, dir, b)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: refused without saying why: %v", what, err)
		}
		// Damage outside of what counts, or to the newer of the two last pages,
		// is borne; nothing else is.
		if err == nil && !slices.Equal(got, m.is) && !slices.Equal(got, m.was) {
			t.Errorf("%s: the file was taken, with %d entries", what, len(got))
		}
	}
}

func TestForeignFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	for what, b := range map[string][]byte{
		"text":   []byte("this is not a store\n"),
		"zeros":  make([]byte, 64<<10),
		"random": bytes.Repeat([]byte{0xde, 0xad, 0xbe, 0xef}, 32<<10),
	} {
		if _, err := reopen(t, dir, b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", what, err)
		}
	}
	if _, err := Open(dir); err == nil {
		t.Error("a directory was taken for a store")
	}
}
