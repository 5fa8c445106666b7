package rig

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
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

// TestProcessesChooseApart: no port that a process chooses is one that another has chosen, even if neither binds them.
func TestProcessesChooseApart(t *testing.T) {
	const process = "RIG_TEST_CHOOSES"
	if os.Getenv(process) != "" {
		for range 2 * inBlock {
			at, err := Free()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println(at)
		}
		fmt.Println()
		_, _ = io.Copy(io.Discard, os.Stdin) // until the other ends have chosen as well
		return
	}
	chosenBy := map[string]int{}
	for i := range 4 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), process+"=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		hold, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = hold.Close(), cmd.Wait()
		})
		lines, n := bufio.NewScanner(out), 0
		for lines.Scan() && lines.Text() != "" {
			if by, again := chosenBy[lines.Text()]; again {
				t.Errorf("process %d chose %s, as process %d did", i, lines.Text(), by)
			}
			chosenBy[lines.Text()] = i
			n++
		}
		if n != 2*inBlock {
			t.Fatalf("process %d chose %d ports, want %d", i, n, 2*inBlock)
		}
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
