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

// Do sends a command, and returns its answer as text. What Redis calls an error is one.
func (c *Conn) Do(words ...string) (string, error) {
	if _, err := c.conn.Write(Command(words...)); err != nil {
		return "", err
	}
	return readReply(c.in)
}

func readReply(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	not := fmt.Errorf("redis: the answer %q is not understood", line)
	if len(line) < 3 {
		return "", not
	}
	switch kind, rest := line[0], line[1:len(line)-2]; kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", errors.New("redis: " + rest)
	case '$':
		n, err := strconv.Atoi(rest)
		const most = 1 << 20
		if err != nil || n > most {
			return "", not
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
	return "", not
}
