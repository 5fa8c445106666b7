package rate

import (
	"cmp"
	"time"
)

// Config says what is sent where, and how fast. Address and Requests are required; the zero value of every
// other field means what its comment says.
type Config struct {
	// Address is host and port of the server, such as 127.0.0.1:8080, which is asked by IPv4. It is not a URL.
	Address string
	// Requests are whole heads, from the method to the empty line, with no body, of methods whose answers have one. The
	// next one of the list is sent next, on whichever connection that is.
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
}

// withDefaults returns a copy of c with every default filled in.
func (c Config) withDefaults() Config {
	c.Conns, c.Lasts, c.Drain = cmp.Or(c.Conns, 64), cmp.Or(c.Lasts, 10*time.Second), cmp.Or(c.Drain, time.Second)
	return c
}
