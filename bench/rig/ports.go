package rig

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// Between choosing a port and binding it in another process, the system must not give it to
// anybody else. Those it gives out by itself, to outgoing connections too, start at 32768 on
// Linux.
const (
	firstPort = 20000
	lastPort  = 32000

	// Several processes choose at once, and do not hear of each other: so each chooses in blocks that it has taken.
	// A block is of the process that listens at its first port, until that process ends.
	inBlock = 50
	blocks  = (lastPort - firstPort) / inBlock
)

// ports are those of this process: the blocks that it has taken, and what is left of the last one.
var ports struct {
	sync.Mutex
	taken     []net.Listener
	next, end int
}

// Free returns host:port of 127.0.0.1 that nobody listens at, neither by TCP nor by UDP,
// and that it has not returned before, in this process or in another one that is there. It may be called from several
// goroutines.
func Free() (string, error) {
	ports.Lock()
	defer ports.Unlock()
	for {
		if ports.next == ports.end {
			if err := takeBlock(); err != nil {
				return "", err
			}
		}
		address := loopback(ports.next)
		ports.next++
		if bind(address) == nil {
			return address, nil
		}
	}
}

// takeBlock takes a block of ports that no process has.
func takeBlock() (err error) {
	for _, n := range rand.Perm(blocks) {
		first := firstPort + n*inBlock
		var l net.Listener
		if l, err = net.Listen("tcp", loopback(first)); err == nil {
			ports.taken = append(ports.taken, l) // else the collector closes it
			ports.next, ports.end = first+1, first+inBlock
			return nil
		}
	}
	return fmt.Errorf("no free ports between %d and %d: all blocks are taken: %w", firstPort, lastPort, err)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

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
