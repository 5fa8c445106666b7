// Package redis is as much of a client of Redis as measurements need: commands one after the other by a connection
// that waits for each answer, and many of them that increment one counter.
package redis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// Conn is a connection. One goroutine may use it at a time.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader
}

// Dial connects to host:port.
func Dial(address string) (*Conn, error) {
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &Conn{conn: c, in: bufio.NewReader(c)}, nil
}

// Close ends the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// Command returns a command as Redis reads it.
func Command(words ...string) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(w), w)
	}
	return out
}

// Do sends a command, and returns its answer as text; of one that is a list, the last element. What Redis calls an error is one.
func (c *Conn) Do(words ...string) (string, error) {
	if _, err := c.conn.Write(Command(words...)); err != nil {
		return "", err
	}
	return readReply(c.in)
}

// deepest is how far lists are within each other that are read.
const deepest = 8

func readReply(in *bufio.Reader) (string, error) { return readReplyAt(in, deepest) }

func readReplyAt(in *bufio.Reader, depth int) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	if len(line) < 3 || depth == 0 {
		return "", fmt.Errorf("redis: the answer %q is not understood", line)
	}
	kind, rest := line[0], line[1:len(line)-2]
	switch kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", errors.New("redis: " + rest)
	}
	n, err := strconv.Atoi(rest)
	const most = 1 << 20
	if err != nil || n > most || kind != '$' && kind != '*' {
		return "", fmt.Errorf("redis: the answer %q is not understood", line)
	}
	if kind == '*' {
		last := ""
		for range n {
			if last, err = readReplyAt(in, depth-1); err != nil {
				return "", err
			}
		}
		return last, nil
	}
	if n < 0 {
		return "", nil // there is none
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(in, b); err != nil {
		return "", err
	}
	return string(b[:n]), nil
}
