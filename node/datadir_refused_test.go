package node

import (
	"errors"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/crdt"
)

// TestRefusedDataDirStaysRefused: a supervisor starts a node again and again whose data
// directory was copied. The next start has a number that no peer has heard of.
func TestRefusedDataDirStaysRefused(t *testing.T) {
	dir := t.TempDir()
	d := openDataDir(t, dir)
	if err := errors.Join(d.Refuse(errors.New("a peer knows start 7")), d.Close()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err := OpenDataDir(dir, crdt.NodeID{})
		if !errors.Is(err, ErrCopied) {
			t.Fatalf("the next start: %v, want %v", err, ErrCopied)
		}
		for _, want := range []string{"a peer knows start 7", "move the directory away", "declare", d.Self().Node.String()} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
	}
}

// TestRefusingWhatIsNotOurs: where locks do not hold, another process may have started
// on the very directory since. It is that one's now.
func TestRefusingWhatIsNotOurs(t *testing.T) {
	dir := t.TempDir()
	d := openDataDir(t, dir)
	later := &DataDir{root: d.root, key: d.key, self: crdt.Incarnation{Node: d.self.Node, Boot: d.self.Boot + 1}}
	if err := later.writeIdentity(later.self); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Refuse(errors.New("superseded")), d.Close()); err != nil {
		t.Fatal(err)
	}
	again := openDataDir(t, dir)
	defer again.Close()
	if again.Self().Boot != later.self.Boot+1 {
		t.Errorf("start %d, want %d", again.Self().Boot, later.self.Boot+1)
	}
}
