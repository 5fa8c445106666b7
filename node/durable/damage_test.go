package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAFileThatIsDamagedWhileOpen cuts the file of a store, or writes zeros over it, under the
// process that has it open. Whatever bbolt makes of that, commits and the end return, and a new
// store takes the place of the old one, as a node heals.
func TestAFileThatIsDamagedWhileOpen(t *testing.T) {
	page := int64(os.Getpagesize())
	cut := func(to int64) func(string) error { return func(path string) error { return os.Truncate(path, to) } }
	zeros := func(from, n int64) func(string) error {
		return func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(make([]byte, n), from)
			return errors.Join(err, f.Close())
		}
	}
	damages := map[string]func(string) error{
		"cut to nothing": cut(0), "cut within a page": cut(page + 904), "zeros over the first pages": zeros(0, 8*page), "removed": os.Remove,
	}
	for n := int64(1); n < 8; n++ {
		damages[fmt.Sprintf("cut to %d pages", n)] = cut(n * page)
		damages[fmt.Sprintf("zeros over page %d", n)] = zeros(n*page, page)
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store")
			f, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			write := func(i int) []Write {
				return []Write{{Object: "o", Key: fmt.Sprintf("k%03d", i), Value: make([]byte, 500)}}
			}
			for i := range 40 {
				if err := f.Commit(write(i)); err != nil {
					t.Fatal(err)
				}
			}
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			returns(t, "four commits, a read, and the end", func() {
				for i := range 4 {
					f.Commit(write(100 + i)) //nolint:errcheck // it may fail
				}
				f.Get("o", "k001") //nolint:errcheck // it may fail
				f.Close()          //nolint:errcheck // it may fail
			})
			returns(t, "a new store in the place", func() {
				again, err := Create(path, write(7))
				if err != nil {
					t.Errorf("a new store: %v", err)
					return
				}
				if err := errors.Join(again.Commit(write(8)), again.Close()); err != nil {
					t.Errorf("the new store: %v", err)
				}
			})
		})
	}
}

// returns fails the test unless f returns.
func returns(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: it does not return", what)
	}
}
