//go:build linux

package tickets

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// A central room: one call of Redis for each decision, on a pool of connections each of
// which has one call under way.

const (
	// connections is how many connections there are to Redis.
	connections = 64

	// incr counts who comes, and is the least that a central room can ask.
	incr = "*2\r\n$4\r\nINCR\r\n$8\r\nvisitors\r\n"
)

// ask makes one call, and takes in the answer, which is a number, and not 0.
func ask(out io.Writer, in *bufio.Reader) error {
	if _, err := io.WriteString(out, incr); err != nil {
		return err
	}
	line, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if line[0] != ':' || line[1] == '0' {
		return fmt.Errorf("redis: the answer is %q", line)
	}
	return nil
}

// central is a server of ours, that keeps nothing on disk.
type central struct {
	*rig.Process
	dir  string
	addr string
}

func startCentral(ctx context.Context) (*central, error) {
	r := &central{}
	err := rig.Try(func() {
		r.dir = rig.Got(os.MkdirTemp("", "tickets-redis"))
		r.addr = rig.Got(rig.Free())
		r.Process = rig.Got(rig.StartRedis(ctx, rig.Anywhere, r.dir, r.addr))
	})
	if err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

func (r *central) stop() {
	if r.Process != nil {
		_ = r.Kill() // it has nothing to lose
	}
	_ = os.RemoveAll(r.dir)
}

// pool is connections to Redis, and who waits for one.
type pool struct {
	come chan *visitor

	mu     sync.Mutex // guards the following, and answers, of which there is one at a time
	failed error
}

// begin has a visitor wait for a connection.
func (p *pool) begin(v *visitor) { p.come <- v }

// serve decides for those who come, by a connection.
func (p *pool) serve(c net.Conn) {
	in := bufio.NewReader(c)
	for v := range p.come {
		err := ask(c, in)
		p.mu.Lock()
		v.answered(err == nil)
		p.failed = errors.Join(p.failed, err)
		p.mu.Unlock()
	}
}

// drive has so many visitors a second come, or if that is 0 so many be under way.
func (r *central) drive(ctx context.Context, perSecond float64, under int64, lasts time.Duration) spell {
	p := &pool{come: make(chan *visitor, 1<<20)}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(p.come)
	for range connections {
		c := rig.Got(net.Dial("tcp", r.addr))
		defer c.Close()
		wg.Go(func() { p.serve(c) })
	}
	server := rig.Got(r.CPU())
	s := rig.Got(newLoad().drive(ctx, []*lane{{decider: p}}, perSecond, under, lasts))
	s.Server = (rig.Got(r.CPU()) - server) / time.Duration(max(1, s.Came))
	p.mu.Lock()
	defer p.mu.Unlock()
	rig.Must(p.failed)
	return s
}
