package suite

import (
	"errors"
	"io"
	"math"
	"net"
)

// closing is a body with whose end its connection ends.
type closing struct {
	io.ReadCloser
	conn net.Conn
}

func (c *closing) Close() error { return errors.Join(c.ReadCloser.Close(), c.conn.Close()) }

// rounded keeps of a figure what can be meant: steps of one over parts.
func rounded(v, parts float64) float64 { return math.Round(v*parts) / parts }
