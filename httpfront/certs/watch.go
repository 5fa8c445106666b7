package certs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Interval is how often files are looked at if nothing else is said.
const Interval = 5 * time.Second

// fileMax is the most that a file of certificates, keys, secrets or tokens may have, in bytes. A chain
// has some 10 KiB, a bundle of all public authorities 250 KiB.
const fileMax = 1 << 20

// Watch looks at files that belong together, such as a certificate and its key.
//
// What it finds changed it hands on when it has found the same twice, so that files
// which are replaced one after the other are not told of while they do not match. Its
// methods are to be called by one goroutine at a time.
//
// Files that are of no use are tried at every look: a certificate that is not valid
// yet will be.
type Watch struct {
	paths []string
	apply func(contents [][]byte) error

	applied  [][]byte // what apply has taken
	seen     [][]byte // what was there at the last look and differs from applied; nil for nothing
	told     bool     // whether seen, or unread, has been told of
	unread   string   // why the files could not be read at the last look; "" if they could
	rejected error    // why what is there is not what is in use; nil if it is
}

// NewWatch reads the files at paths and hands their contents, in this order, to apply,
// which must not change them and says if they are of no use. It is asked about the same
// contents again then. If the files cannot be read or are of no use, NewWatch fails.
func NewWatch(paths []string, apply func(contents [][]byte) error) (*Watch, error) {
	w := &Watch{paths: paths, apply: apply}
	contents, err := readAll(paths)
	if err != nil {
		return nil, err
	}
	if err := apply(contents); err != nil {
		return nil, err
	}
	w.applied = contents
	return w, nil
}

// Look looks at the files. It reports whether others were applied, and an error if they
// have changed and are of no use, so that what was applied before is still in use: each
// such change is told of once.
func (w *Watch) Look() (changed bool, err error) {
	contents, err := readAll(w.paths)
	if err != nil {
		return false, w.unreadable(err)
	}
	w.unread = ""
	if slices.EqualFunc(contents, w.applied, bytes.Equal) {
		w.seen, w.told, w.rejected = nil, false, nil
		return false, nil
	}
	if w.seen == nil || !slices.EqualFunc(contents, w.seen, bytes.Equal) {
		w.seen, w.told = contents, false
		return false, nil // perhaps only a part of the change
	}
	if err := w.apply(contents); err != nil {
		again := w.told
		w.told, w.rejected = true, err
		if again {
			return false, nil
		}
		return false, err
	}
	w.applied, w.seen, w.told, w.rejected = contents, nil, false, nil
	return true, nil
}

// unreadable returns why files cannot be read, the second time that it is so and not
// again.
func (w *Watch) unreadable(err error) error {
	w.seen = nil
	if w.unread != err.Error() {
		w.unread, w.told = err.Error(), false
		return nil
	}
	if w.told {
		return nil
	}
	w.told, w.rejected = true, err
	return err
}

// Rejected returns why what is in the files is not in use; nil if it is.
func (w *Watch) Rejected() error { return w.rejected }

// Run looks every interval until ctx ends, and calls told with what Look returned if
// that is anything.
func (w *Watch) Run(ctx context.Context, interval time.Duration, told func(changed bool, err error)) {
	ticker := time.Tick(interval)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker:
			if changed, err := w.Look(); changed || err != nil {
				told(changed, err)
			}
		}
	}
}

func readAll(paths []string) ([][]byte, error) {
	contents := make([][]byte, len(paths))
	for i, path := range paths {
		var err error
		if contents[i], err = ReadFile(path); err != nil {
			return nil, err
		}
		if len(contents[i]) == 0 {
			return nil, fmt.Errorf("%s: %w", path, errEmpty)
		}
	}
	return contents, nil
}

// ReadFile reads a file of certificates, keys, secrets or tokens. One that is larger than any of them, or has no
// end, is refused before it fills memory.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > fileMax:
		return nil, fmt.Errorf("%s: more than %d bytes, which is no file of certificates, keys, secrets or tokens", path, fileMax)
	}
	return b, nil
}

var errEmpty = errors.New("the file is empty")
