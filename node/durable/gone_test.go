package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ropeline/ropeline/node/durable"
)

// TestAStoreThatIsGone: what happens to its file or its folder shows, though every commit succeeds.
func TestAStoreThatIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	path := filepath.Join(dir, "store")
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(dir, 0o700))
	s, err := durable.Open(path)
	must(err)
	defer s.Close()
	commit := func() error { return s.Commit([]durable.Write{{Object: "o", Key: "k", Value: []byte("v")}}) }
	must(commit(), s.Check())
	for what, c := range map[string]struct{ harm, mend func() error }{
		"removed, or under another name": {func() error { return os.Rename(path, path+".old") }, func() error { return os.Rename(path+".old", path) }},
		"in a folder that was renamed":   {func() error { return os.Rename(dir, dir+"2") }, func() error { return os.Rename(dir+"2", dir) }},
		"replaced": {
			func() error { return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, []byte("x"), 0o600)) },
			func() error { return os.Rename(path+".old", path) },
		},
	} {
		must(c.harm())
		if err := s.Check(); !errors.Is(err, durable.ErrGone) || commit() != nil {
			t.Errorf("%s: check says %v", what, err)
		}
		must(c.mend(), s.Check())
	}
	fresh, err := durable.Create(path, nil)
	must(err)
	defer fresh.Close()
	if err := s.Check(); !errors.Is(err, durable.ErrGone) || fresh.Check() != nil {
		t.Errorf("the store whose place another one took: %v; the other one: %v", err, fresh.Check())
	}
}
