package deadline

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// pipe is one end of a connection in memory that counts how often its deadline is set.
type pipe struct {
	net.Conn
	lazy *Lazy
	set  int
}

func newPipe(t *testing.T) (*pipe, net.Conn) {
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	p := &pipe{Conn: a}
	p.lazy = &Lazy{Arm: func(t time.Time) error {
		p.set++
		return a.SetReadDeadline(t)
	}}
	return p, b
}

func (p *pipe) Read(b []byte) (int, error) {
	for {
		n, err := p.Conn.Read(b)
		if !p.lazy.Again(err) {
			return n, err
		}
	}
}

// endsAfter expects a read to run out when so much time has passed.
func (p *pipe) endsAfter(t *testing.T, want time.Duration) {
	t.Helper()
	begun := time.Now()
	if _, err := p.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != want {
		t.Fatalf("the read ended after %v with %v, want %v", time.Since(begun), err, want)
	}
}

func TestDeadlinesHoldToTheNanosecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPipe(t)
		set := func(d time.Duration) { p.lazy.Set(time.Now().Add(d)) }
		set(10 * time.Second)
		p.endsAfter(t, 10*time.Second)
		set(10 * time.Second) // the one that ran out is still what the connection has
		p.endsAfter(t, 10*time.Second)
		set(10 * time.Second)
		time.Sleep(3 * time.Second)
		set(10 * time.Second)
		p.endsAfter(t, 10*time.Second)
		set(30 * time.Second)
		set(2 * time.Second) // sooner
		p.endsAfter(t, 2*time.Second)
		set(0)
		p.endsAfter(t, 0)
		set(-time.Second)
		p.endsAfter(t, 0)
	})
}

func TestADeadlineThatIsMovedWhileARead(t *testing.T) {
	for _, then := range []time.Duration{2 * time.Second, time.Minute} { // sooner, and later
		synctest.Test(t, func(t *testing.T) {
			p, _ := newPipe(t)
			p.lazy.Set(time.Now().Add(30 * time.Second))
			go func() {
				time.Sleep(time.Second)
				p.lazy.Set(time.Now().Add(then))
			}()
			p.endsAfter(t, time.Second+then)
		})
	}
}

func TestNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, far := newPipe(t)
		p.lazy.Set(time.Now().Add(time.Second))
		p.lazy.Set(time.Time{})
		go func() {
			time.Sleep(time.Hour)
			far.Write([]byte("x"))
		}()
		if _, err := p.Read(make([]byte, 1)); err != nil {
			t.Fatalf("the read ended with %v, without a deadline", err)
		}
	})
}

// What it is for: a deadline that is moved on and on is set once in a while.
func TestDeadlinesAreSetSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, far := newPipe(t)
		go func() {
			for range 10_000 {
				time.Sleep(time.Millisecond)
				far.Write([]byte("x"))
			}
			far.Close()
		}()
		var err error
		for err == nil {
			p.lazy.Set(time.Now().Add(2 * time.Second))
			_, err = p.Read(make([]byte, 1))
		}
		if err != io.EOF || p.set > 6 {
			t.Errorf("%v; set %d times in 10 s for a deadline of 2 s, want 6 times at most", err, p.set)
		}
	})
}

func TestErrorsThatAreNoTimeoutsEnd(t *testing.T) {
	l := &Lazy{Arm: func(time.Time) error { return nil }}
	for _, err := range []error{nil, io.EOF, net.ErrClosed} {
		if l.Again(err) {
			t.Errorf("%v is begun again", err)
		}
	}
	l = &Lazy{Arm: func(time.Time) error { return net.ErrClosed }}
	l.Set(time.Now().Add(time.Hour))
	if l.Again(os.ErrDeadlineExceeded) {
		t.Error("a connection that takes no deadline is read again")
	}
}
