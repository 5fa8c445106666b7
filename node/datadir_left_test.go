package node

import (
	"testing"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
)

// TestAbandonedDataDirMakesANewNode: what starts with the directory of a node
// that has left is another node, and finds nothing of it.
func TestAbandonedDataDirMakesANewNode(t *testing.T) {
	path := t.TempDir()
	open := func() (*DataDir, durable.Store, []durable.Write) {
		d, err := OpenDataDir(path, crdt.NodeID{})
		if err != nil {
			t.Fatal(err)
		}
		s, all, _, err := d.openStore(durable.Files{})
		if err != nil {
			t.Fatal(err)
		}
		return d, s, all
	}
	d, s, _ := open()
	if err := s.Commit([]durable.Write{{Object: "rights/x", Key: "k", Value: []byte("v")}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Abandon(); err != nil {
		t.Fatal(err)
	}
	if err := d.Abandon(); err != nil {
		t.Errorf("a second time: %v", err)
	}
	before := d.Self()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d, s, all := open()
	defer d.Close()
	defer s.Close()
	if d.Self().Node == before.Node || len(all) > 0 {
		t.Errorf("%v comes after %v, with %d entries", d.Self(), before, len(all))
	}
}
