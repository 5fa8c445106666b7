package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Ports for nodes that a process of ours is about to start. Between choosing one
// and binding it again, the system must not give it to anybody else; those it
// gives out by itself, to outgoing connections too, start at 32768 on Linux.
const (
	firstPort = 20000
	lastPort  = 32000
	portTries = 100
)

// holdPort binds a free loopback port, "tcp" or "udp", and returns its address.
// Whoever closes the holder frees it.
func holdPort(network string) (held io.Closer, address string, err error) {
	for range portTries {
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(lastPort-firstPort)))
		if network == "udp" {
			held, err = net.ListenPacket(network, address)
		} else {
			held, err = net.Listen(network, address)
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return held, address, err
		}
	}
	return nil, "", fmt.Errorf("no free port found between %d and %d: %w", firstPort, lastPort, err)
}
