package rig

import (
	"net"
	"sync"
	"testing"
)

// TestFreeReturnsNoneTwice, also to callers at once, and each can be listened at.
func TestFreeReturnsNoneTwice(t *testing.T) {
	var seen sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				at, err := Free()
				if err != nil {
					t.Error(err)
					return
				}
				if _, again := seen.LoadOrStore(at, true); again {
					t.Errorf("%s was returned twice", at)
				}
			}
		})
	}
	wg.Wait()
}

// TestATakenPortIsNotFree, whether it is taken by TCP or by UDP.
func TestATakenPortIsNotFree(t *testing.T) {
	at, err := Free()
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want bool, when string) {
		t.Helper()
		if err := bind(at); (err == nil) != want {
			t.Errorf("%s %s: %v; want it free: %v", at, when, err, want)
		}
	}
	expect(true, "at first")
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	expect(false, "while somebody listens")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := net.ListenPacket("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	expect(false, "while somebody receives datagrams")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	expect(true, "when they have ended")
}
