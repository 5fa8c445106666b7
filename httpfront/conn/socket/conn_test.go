//go:build unix

package socket

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
)

// pair returns both ends of a connection.
func pair(t *testing.T) (here net.Conn, there *net.TCPConn) {
	t.Helper()
	ln := must.Do(net.Listen("tcp", "127.0.0.1:0"))
	defer ln.Close()
	a := must.Do(net.Dial("tcp", ln.Addr().String()))
	b := must.Do(ln.Accept())
	t.Cleanup(func() { a.Close(); b.Close() })
	here, there = New(a), b.(*net.TCPConn)
	if here == a {
		t.Fatal("the connection is not wrapped")
	}
	for _, c := range []net.Conn{here, there} {
		c.SetDeadline(time.Now().Add(time.Minute))
	}
	return here, there
}

// TestAllBytesArrive sends in both directions at once what fills the buffers of the system many
// times over.
func TestAllBytesArrive(t *testing.T) {
	here, there := pair(t)
	data := make([]byte, 16<<20)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	var all sync.WaitGroup
	for name, c := range map[string]net.Conn{"here": here, "there": there} {
		all.Go(func() {
			n, err := c.Write(data)
			if err := errors.Join(err, c.(interface{ CloseWrite() error }).CloseWrite()); err != nil || n != len(data) {
				t.Errorf("%d of %d bytes go from %s, %v", n, len(data), name, err)
			}
		})
		all.Go(func() {
			got, err := io.ReadAll(struct{ io.Reader }{c})
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes arrive %s, %v; want %d", len(got), name, err, len(data))
			}
		})
	}
	all.Wait()
	if n, err := here.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("at the end there are %d bytes and %v, want EOF", n, err)
	}
}

// What fails fails as in package net.
func TestFailures(t *testing.T) {
	type ends struct {
		here  net.Conn
		there *net.TCPConn
	}
	over, large := time.Unix(1, 0), make([]byte, 64<<20)
	read := func(c net.Conn) (int, error) { return c.Read(make([]byte, 1)) }
	write := func(c net.Conn) (int, error) { return c.Write(large) }
	for name, c := range map[string]struct {
		before func(ends)
		do     func(here net.Conn) (int, error)
		want   error
	}{
		"a deadline of a read that is over": {func(e ends) { e.here.SetReadDeadline(over) }, read, os.ErrDeadlineExceeded},
		"a deadline of a read that waits":   {func(e ends) { e.here.SetReadDeadline(time.Now().Add(time.Millisecond)) }, read, os.ErrDeadlineExceeded},
		"a deadline of a write that nobody reads": {func(e ends) {
			time.AfterFunc(50*time.Millisecond, func() { e.here.SetWriteDeadline(over) })
		}, write, os.ErrDeadlineExceeded},
		"a read of what was closed":       {func(e ends) { e.here.Close() }, read, net.ErrClosed},
		"a write to what was closed":      {func(e ends) { e.here.Close() }, write, net.ErrClosed},
		"a read that is closed meanwhile": {func(e ends) { time.AfterFunc(time.Millisecond, func() { e.here.Close() }) }, read, net.ErrClosed},
		"a read of what was reset": {func(e ends) {
			e.there.SetLinger(0)
			e.there.Close()
		}, read, syscall.ECONNRESET},
	} {
		here, there := pair(t)
		c.before(ends{here, there})
		n, err := c.do(here)
		if some := n > 0 && n < len(large); some != (name == "a deadline of a write that nobody reads") {
			t.Errorf("%s: %d bytes went over, want some only where they were written in time", name, n)
		}
		var op *net.OpError
		if !errors.Is(err, c.want) || !errors.As(err, &op) || op.Timeout() != (c.want == os.ErrDeadlineExceeded) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

// A deadline in the past, or a moment away, ends what is read, and one that is lifted lets the
// connection be used again.
func TestADeadlineIsNotTheEnd(t *testing.T) {
	for name, read := range map[string]func(net.Conn) ([]byte, error){
		"Read":    func(c net.Conn) ([]byte, error) { return io.ReadAll(struct{ io.Reader }{c}) },
		"Receive": func(c net.Conn) ([]byte, error) { return receive(c, 10) },
	} {
		here, there := pair(t)
		for _, end := range []time.Time{time.Unix(1, 0), time.Now().Add(20 * time.Millisecond)} {
			here.SetReadDeadline(end)
			if _, err := read(here); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		here.SetReadDeadline(time.Time{})
		there.Write([]byte("later"))
		there.CloseWrite()
		if got, err := read(here); string(got) != "later" || err != nil {
			t.Errorf("%s then: got %q, %v", name, got, err)
		}
		here.Close()
		if _, err := read(here); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s closed: got %v", name, err)
		}
	}
}

func TestNew(t *testing.T) {
	if a, _ := net.Pipe(); New(a) != a {
		t.Error("a pipe is wrapped")
	}
}

// receive reads all that comes by Receive, by Take of n bytes at a time, to the end or an error.
func receive(c net.Conn, n int) (all []byte, err error) {
	for {
		b, err := c.(interface{ Receive() (*Buffer, error) }).Receive()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		p := make([]byte, n)
		for more := true; more; {
			k := 0
			k, more = b.Take(p)
			all = append(all, p[:k]...)
		}
		Free(b)
	}
}

// TestReceive takes what is there already, what comes later, and the end.
func TestReceive(t *testing.T) {
	data := bytes.Repeat([]byte("what comes "), 1000) // more than a buffer holds
	for name, n := range map[string]int{"byte by byte": 1, "in pieces": 1000, "at once": 1 << 20} {
		here, there := pair(t)
		go func() {
			there.Write(data[:5000])
			there.Write(data[5000:])
			there.CloseWrite()
		}()
		if got, err := receive(here, n); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: received %d bytes, %v; want %d and the end", name, len(got), err, len(data))
		}
	}
}
