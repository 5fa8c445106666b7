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

// TestProcessesChooseApart: ports that one process tries first are none of those that the next ones do. In the
// end it tries all of them.
func TestProcessesChooseApart(t *testing.T) {
	chosenBy := map[int]int{}
	for process := range parts {
		for range 2000 {
			port := choose(1000+process, 0)
			if by, ok := chosenBy[port]; ok && by != process || port < firstPort || port >= lastPort {
				t.Fatalf("process %d tries %d, as process %d does", process, port, by)
			}
			chosenBy[port] = process
		}
	}
	others := map[int]bool{}
	for range 2000 {
		others[chosenBy[choose(1000, tries-1)]] = true
	}
	if len(others) != parts {
		t.Errorf("in the end it tries %d parts, want %d", len(others), parts)
	}
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
