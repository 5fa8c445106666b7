//go:build linux

package floods

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/bench/rig"
)

// Order is what a flood is to do.
type Order struct {
	Kind    string
	Address string        // host:port of the node
	Conns   int           // how many connections, of a kind that opens some
	Over    time.Duration // the time over which they are opened the first time, so that they do not all end in one moment
}

// progress is what a flood tells of itself, a line of JSON each second.
type progress struct {
	Held     int64 // connections that are open
	Opened   int64 // so far
	Failed   int64 // that could not be opened
	Answered int64 // requests
}

func (p progress) String() string {
	if p.Answered > 0 {
		return fmt.Sprintf("%d requests answered", p.Answered)
	}
	return fmt.Sprintf("%d connections open, %d opened so far, %d failed", p.Held, p.Opened, p.Failed)
}

// flood is a flood that goes on.
type flood struct {
	order                          Order
	held, opened, failed, answered atomic.Int64
	dialing                        chan struct{}
}

// mostDialing is how many connections are being opened at a time.
const mostDialing = 64

// Hold has a flood go on until ctx ends, and tells of it.
func Hold(ctx context.Context, o Order, out io.Writer) error {
	k, ok := kindOf(o.Kind)
	if !ok {
		return fmt.Errorf("there is no kind %q", o.Kind)
	}
	f := &flood{order: o, dialing: make(chan struct{}, mostDialing)}
	var wg sync.WaitGroup
	if k.head != nil {
		o.Conns, k.occupy = senders, f.send(new(atomic.Int64), k.head)
	}
	for i := range o.Conns {
		wg.Go(func() {
			_ = rig.Sleep(ctx, o.Over/time.Duration(o.Conns)*time.Duration(i)) // keep looks at ctx
			f.keep(ctx, i, k.occupy)
		})
	}
	tick := time.Tick(time.Second)
	var err error
	for lines := json.NewEncoder(out); err == nil && ctx.Err() == nil; {
		err = lines.Encode(progress{f.held.Load(), f.opened.Load(), f.failed.Load(), f.answered.Load()})
		select {
		case <-ctx.Done():
		case <-tick:
		}
	}
	wg.Wait()
	return err
}

// senders is how many connections bring requests, each of which is sent when the one before is answered.
const senders = 64

// send sends one request after the other. Whatever the answer is, it is read and counted.
func (f *flood) send(next *atomic.Int64, head func(int) []byte) func(context.Context, net.Conn, int) {
	return func(_ context.Context, c net.Conn, _ int) {
		in := bufio.NewReader(c)
		var answer fasthttp.Response
		for {
			if _, err := c.Write(head(int(next.Add(1)))); err != nil {
				return
			}
			if err := answer.Read(in); err != nil {
				return
			}
			f.answered.Add(1)
		}
	}
}

// keep has one connection open at all times, the ith.
func (f *flood) keep(ctx context.Context, i int, occupy func(context.Context, net.Conn, int)) {
	for ctx.Err() == nil {
		c, err := f.dial(ctx, i)
		if err != nil {
			f.failed.Add(1)
			_ = rig.Sleep(ctx, time.Second) // the loop looks at ctx
			continue
		}
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10) // what is not read is to be the node's
		f.opened.Add(1)
		f.held.Add(1)
		end := context.AfterFunc(ctx, func() { c.Close() })
		occupy(ctx, c, i)
		end()
		c.Close()
		f.held.Add(-1)
	}
}

// sources is how many addresses of this machine connections come from: one has no ports for all of them while earlier
// ones are on their way out, and operators are counted by address.
const sources = 250

func (f *flood) dial(ctx context.Context, i int) (net.Conn, error) {
	select {
	case f.dialing <- struct{}{}:
		defer func() { <-f.dialing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, 1, byte(1+i%sources))}, Timeout: 10 * time.Second}
	return d.DialContext(ctx, "tcp", f.order.Address)
}
