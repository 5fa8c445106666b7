// Package bare is a server with nothing in it: epoll on one thread, which finds the end of each head and
// writes the same bytes. It reads no header and can do nothing else, and so it is the floor below which no
// server on this machine can be, and what shows how much a load generator sustains.
//
// It allocates nothing per request. Elsewhere than on Linux, [Server.Serve] returns an error.
package bare

import (
	"bytes"
	"fmt"
)

// Config says what is answered.
type Config struct {
	// Address is where to listen, by IPv4: host and port, such as 127.0.0.1:0 for any port that is free.
	Address string
	// Body is the size of every answer's body in bytes. 0: an empty one.
	Body int
}

// answer returns what every request gets.
func (c Config) answer() []byte {
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", c.Body)
	return append([]byte(head), bytes.Repeat([]byte("x"), c.Body)...)
}

// scan counts the heads that end in p. state is how much of such an end came before, and then after p; it
// begins as 0.
func scan(p []byte, state int) (heads, after int) {
	const end = "\r\n\r\n"
	for len(p) > 0 {
		if state == 0 { // far most bytes are of lines
			cr := bytes.IndexByte(p, '\r')
			if cr < 0 {
				return heads, 0
			}
			p, state = p[cr+1:], 1
			continue
		}
		switch {
		case p[0] == end[state]:
			if state++; state == len(end) {
				heads, state = heads+1, 0
			}
		case p[0] == '\r':
			state = 1
		default:
			state = 0
		}
		p = p[1:]
	}
	return heads, state
}
