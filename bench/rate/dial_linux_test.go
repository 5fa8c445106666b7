package rate

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSignalsDoNotEndDialing connects to a server whose line is full. A signal comes while it waits, and then the server takes
// connections.
func TestSignalsDoNotEndDialing(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*unix.SockaddrInet4).Port}).String()
	p, err := newPoller(8)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()

	first, err := p.dial(address, 0) // is the line
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(first)
	thread, done := make(chan int, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		thread <- unix.Gettid()
		second, err := p.dial(address, 1)
		if err == nil {
			err = unix.Close(second)
		}
		done <- err
	}()
	who := <-thread
	connecting := fmt.Sprint(unix.SYS_CONNECT, " ")
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		is, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", who))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(is), connecting) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it does not wait for the server, but is in %q", is)
		}
	}
	if err := unix.Tgkill(unix.Getpid(), who, unix.SIGURG); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		taken, _, err := unix.Accept(fd)
		if err != nil {
			t.Error("nobody has connected:", err)
			break
		}
		defer unix.Close(taken)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
