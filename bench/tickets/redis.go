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
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// A central room: one call of Redis for each decision, on a pool of connections each of
// which has one call under way.

// connections is how many connections there are to Redis.
const connections = 64

// Calls that decide.
var (
	// incr counts who comes, and is the least that a central room can ask.
	incr = command("INCR", "visitors")

	// limited counts who comes as long as there are places.
	limited = command("EVAL", `local n = redis.call("INCR", KEYS[1])
if n > tonumber(ARGV[1]) then redis.call("DECR", KEYS[1]) return 0 end
return n`, "1", "visitors", strconv.Itoa(places))
)

// command returns a command as Redis reads it.
func command(words ...string) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(w), w)
	}
	return out
}

// ask makes one call, and takes in the answer, which is a number, and not 0.
func ask(out io.Writer, in *bufio.Reader, call []byte) error {
	if _, err := out.Write(call); err != nil {
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

// repeat has so many connections make one call again and again for a time, each without waiting for the others, and
// returns how many calls there were.
func repeat(address string, call []byte, conns int, lasts time.Duration) (calls int64, err error) {
	var all []net.Conn
	for range conns {
		c, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			return 0, err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(lasts + 10*time.Second))
		all = append(all, c)
	}
	var made atomic.Int64
	errs := make([]error, conns)
	var wg sync.WaitGroup
	until := time.Now().Add(lasts)
	for i, c := range all {
		wg.Go(func() {
			for in := bufio.NewReaderSize(c, 64); time.Now().Before(until) && errs[i] == nil; made.Add(1) {
				errs[i] = ask(c, in, call)
			}
		})
	}
	wg.Wait()
	return made.Load(), errors.Join(errs...)
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
func (p *pool) serve(c net.Conn, call []byte) {
	in := bufio.NewReader(c)
	for v := range p.come {
		err := ask(c, in, call)
		p.mu.Lock()
		v.answered(err == nil)
		p.failed = errors.Join(p.failed, err)
		p.mu.Unlock()
	}
}

// most has every connection make one call after the other, and returns how many there were
// a second. Nobody waits for a connection, and no load is in the way.
func (r *central) most(call []byte, lasts time.Duration) spell {
	began, own, server := time.Now(), rig.Own(), rig.Got(r.CPU())
	calls := rig.Got(repeat(r.addr, call, connections, lasts))
	each := time.Duration(max(1, calls))
	return spell{Came: calls, Given: calls, Lasted: time.Since(began), CPU: (rig.Own() - own) / each, Server: (rig.Got(r.CPU()) - server) / each}
}

// open has visitors come at a rate.
func (r *central) open(ctx context.Context, call []byte, perSecond float64, lasts time.Duration) spell {
	p := &pool{come: make(chan *visitor, 1<<20)}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(p.come)
	for range connections {
		c := rig.Got(net.Dial("tcp", r.addr))
		defer c.Close()
		wg.Go(func() { p.serve(c, call) })
	}
	server := rig.Got(r.CPU())
	s := rig.Got(newLoad().drive(ctx, []*lane{{decider: p}}, perSecond, 0, lasts))
	s.Server = (rig.Got(r.CPU()) - server) / time.Duration(max(1, s.Came))
	p.mu.Lock()
	defer p.mu.Unlock()
	rig.Must(p.failed)
	return s
}
