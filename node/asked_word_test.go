package node

import (
	"context"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// TestVerdictsSayWhomTheyAskedFor: a visitor who needs a ticket waits for a counter, also where
// this node is it, and one who is in waits for nobody.
func TestVerdictsSayWhomTheyAskedFor(t *testing.T) {
	data, err := OpenDataDir(t.TempDir(), crdt.NodeID{})
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	n, err := New(Config{Data: data, Site: "a", Rooms: []room.Settings{escrowSettings(10)}, OwnerKey: []byte("key"), Found: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx, nil) }()
	for n.Ready() != nil {
		time.Sleep(time.Millisecond)
	}
	v := n.Route("shop", "/").Decide(Pass{}, false, n.Now())
	if !v.Admit || v.Word != "counter" || v.Asked <= 0 {
		t.Errorf("who is new: %v, waited %v for %q", v.Admit, v.Asked, v.Word)
	}
	v = n.Route("shop", "/").Decide(v.Pass, true, n.Now())
	if !v.Admit || v.Word != "" || v.Asked != 0 {
		t.Errorf("who is in: %v, waited %v for %q", v.Admit, v.Asked, v.Word)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
