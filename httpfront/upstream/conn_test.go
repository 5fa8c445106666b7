package upstream

import (
	"bytes"
	"net"
	"testing"
	"time"
)

// deadlines is a connection that always has something to read, and keeps the deadline
// that was set last.
type deadlines struct {
	net.Conn
	meanwhile func() // called once, while a deadline is being set
	deadline  time.Time
}

func (c *deadlines) SetReadDeadline(t time.Time) error {
	if f := c.meanwhile; f != nil {
		c.meanwhile = nil
		f()
	}
	c.deadline = t
	return nil
}

func (c *deadlines) Read(p []byte) (int, error) { return bytes.NewReader([]byte("x")).Read(p) }

// TestALimitSetWhileAReadBeginsHolds: an upload that ends sets one while the answer is
// awaited by another goroutine.
func TestALimitSetWhileAReadBeginsHolds(t *testing.T) {
	for name, c := range map[string]struct{ before, meanwhile time.Duration }{
		"from none to one": {0, time.Minute},
		"from one to none": {time.Minute, 0},
		"to a longer one":  {time.Minute, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			raw := &deadlines{}
			conn := &Conn{Conn: raw}
			conn.Limit(c.before)
			raw.meanwhile = func() { conn.Limit(c.meanwhile) }
			start := time.Now()
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if c.meanwhile == 0 {
				if !raw.deadline.IsZero() {
					t.Errorf("it has to end at %v, want no limit", raw.deadline)
				}
				return
			}
			if got := raw.deadline.Sub(start); got < c.meanwhile || raw.deadline.After(time.Now().Add(c.meanwhile)) {
				t.Errorf("it has to end after %v, want %v", got, c.meanwhile)
			}
		})
	}
}
