package rig

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
)

// Between choosing a port and binding it in another process, the system must not give it to
// anybody else. Those it gives out by itself, to outgoing connections too, start at 32768 on
// Linux.
const (
	firstPort = 20000
	lastPort  = 32000
	tries     = 100

	// Several processes choose at once, and do not hear of each other: so each begins in one part of the range.
	parts  = 12
	inPart = (lastPort - firstPort) / parts
)

// handedOut has the addresses that Free has returned: one that is not bound yet is as free
// as ever.
var handedOut sync.Map

// Free returns host:port of 127.0.0.1 that nobody listens at, neither by TCP nor by UDP,
// and that it has not returned before in this process. It may be called from several
// goroutines.
func Free() (string, error) {
	var last error
	for i := range tries {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(choose(os.Getpid(), i)))
		if last = bind(address); last != nil {
			continue
		}
		if _, again := handedOut.LoadOrStore(address, true); !again {
			return address, nil
		}
		last = fmt.Errorf("%s was returned before", address)
	}
	return "", fmt.Errorf("no free port found between %d and %d in %d tries: %w", firstPort, lastPort, tries, last)
}

// choose returns the port that a process tries next, after so many tries. In the end it may be any, as a process
// may have used up its part.
func choose(process, tried int) int {
	if tried >= tries/2 {
		return firstPort + rand.IntN(lastPort-firstPort)
	}
	return firstPort + process%parts*inPart + rand.IntN(inPart)
}

// FreePorts is Free for so many.
func FreePorts(n int) (all []string, err error) {
	for range n {
		one, err := Free()
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// bind listens at an address, and ends that.
func bind(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	c, err := net.ListenPacket("udp", address)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return errors.Join(c.Close(), l.Close())
}

// Serve has s serve at an address, host:port, or on any port of loopback if that is empty, until stop is called.
func Serve(s *http.Server, address string) (at string, stop func(), err error) {
	l, err := net.Listen("tcp", cmp.Or(address, "127.0.0.1:0"))
	if err != nil {
		return "", nil, err
	}
	done := make(chan struct{})
	go func() {
		_ = s.Serve(l) // ends with stop, and says so
		close(done)
	}()
	return l.Addr().String(), func() {
		_ = s.Close()
		<-done
	}, nil
}
