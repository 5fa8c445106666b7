package rate

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Config says what is sent where, and how fast. Address and Requests are required; the zero value of every
// other field means what its comment says.
type Config struct {
	// Address is host and port of the server, such as 127.0.0.1:8080. It is not a URL.
	Address string
	// Requests are whole heads, from the method to the empty line. There are no bodies. The next one of the list is sent
	// next, on whichever connection that is.
	Requests [][]byte
	// OnePerConn has every connection send one request again and again instead: the first connection the first one, as
	// browsers do, each of which has its own cookies.
	OnePerConn bool
	// Conns is how many connections are kept open. In the closed model it is how many requests are under
	// way at a time; in the open one, how many may be, and more of them wait in line. Default: 64.
	Conns int
	// Rate is how many requests per second are due (the open model), evenly: what differs between two runs is
	// then the servers and nothing else, and the tail is theirs, while the bursts of a crowd have requests
	// wait for each other at a server however good it is. 0: the closed model, in which each
	// connection sends the next request when it has the answer to the last.
	Rate float64
	// Warm is how long requests are sent before those that count. Default: none.
	Warm time.Duration
	// Lasts is how long requests that count are due, or sent in the closed model. Default: 10 s.
	Lasts time.Duration
	// Drain is how long after that answers are still waited for, and requests that wait in line are sent.
	// Then they are given up. Default: 1 s.
	Drain time.Duration
	// Timeout is how long an answer may take from when the request was sent, and a connection to be made.
	// Default: 10 s. The connection of a request that took longer is given up; it may take up to 20 ms until
	// that is noticed.
	Timeout time.Duration
	// CPU is the number of the one that the generator stays on. nil: it is not kept on any.
	CPU *int
}

// ErrConfig is what errors about an impossible Config wrap.
var ErrConfig = errors.New("rate: bad config")

// mostRate is the highest rate that is searched.
const mostRate = 10e6

// withDefaults returns a checked copy of c with every default filled in.
func (c Config) withDefaults() (Config, error) {
	c.Conns = cmp.Or(c.Conns, 64)
	c.Lasts, c.Drain, c.Timeout = cmp.Or(c.Lasts, 10*time.Second), cmp.Or(c.Drain, time.Second), cmp.Or(c.Timeout, 10*time.Second)
	return c, c.check()
}

// check reports an address or a request that cannot be meant. Numbers have their bounds where people give them.
func (c Config) check() error {
	if strings.Contains(c.Address, "://") {
		return fmt.Errorf("%w: address %q is a URL; host:port is wanted", ErrConfig, c.Address)
	}
	if _, _, err := net.SplitHostPort(c.Address); err != nil {
		return fmt.Errorf("%w: address %q: host:port is wanted, such as 127.0.0.1:8080", ErrConfig, c.Address)
	}
	if len(c.Requests) == 0 {
		return fmt.Errorf("%w: no request", ErrConfig)
	}
	for i, head := range c.Requests {
		if err := checkHead(head); err != nil {
			return fmt.Errorf("%w: request %d: %w", ErrConfig, i+1, err)
		}
	}
	return nil
}

// checkHead reports what keeps bytes from being a head, of which the server would make something else than
// is meant, and every answer after it would be counted for another request.
func checkHead(head []byte) error {
	in := bufio.NewReader(bytes.NewReader(head))
	r, err := http.ReadRequest(in)
	switch {
	case err != nil || bytes.Count(head, []byte("\n")) != bytes.Count(head, []byte("\r\n")):
		return fmt.Errorf("%.100q is no head, which is a method, a target and HTTP/1.1, lines of a name, a colon and a value, and an empty line: %w", head, err)
	case !r.ProtoAtLeast(1, 1) || r.Host == "":
		return fmt.Errorf("%.100q is not of HTTP/1.1, or no line says Host", head)
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0 || in.Buffered() > 0:
		return fmt.Errorf("%.100q has or promises a body, and there are only heads", head)
	}
	return nil
}
