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
	"os/exec"
	"strconv"
	"strings"
	"sync"
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

// command returns a call as Redis reads it.
func command(words ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return []byte(b.String())
}

// errNoRedis says that there is none on this machine.
var errNoRedis = errors.New("redis-server is missing")

// redis is a server of ours, that keeps nothing on disk.
type redis struct {
	*rig.Process
	dir  string
	addr string
}

func startRedis(ctx context.Context) (_ *redis, err error) {
	if _, err := rig.Find("redis-server"); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRedis, err)
	}
	r := &redis{}
	if r.dir, err = os.MkdirTemp("", "tickets-redis"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.stop())
		}
	}()
	if r.addr, err = rig.Free(); err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(r.addr, ":")
	r.Process, err = rig.Start(ctx, rig.Command{Name: "redis-server",
		Args: []string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", r.dir}})
	if err != nil {
		return nil, err
	}
	return r, r.AwaitListener(ctx, r.addr)
}

func (r *redis) stop() error {
	var err error
	if r.Process != nil {
		err = r.Stop()
	}
	return errors.Join(err, os.RemoveAll(r.dir))
}

// pool is connections to Redis.
type pool struct {
	call  []byte
	conns []net.Conn
	come  chan *visitor // who waits for a connection
	wg    sync.WaitGroup

	mu     sync.Mutex // guards the following, and answers, of which there is one at a time
	failed error
}

func dialRedis(addr string, call []byte) (*pool, error) {
	p := &pool{call: call, come: make(chan *visitor, 1<<20)}
	for range connections {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.conns = append(p.conns, c)
	}
	return p, nil
}

func (p *pool) close() error {
	errs := []error{p.failed}
	for _, c := range p.conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// begin has a visitor wait for a connection.
func (p *pool) begin(v *visitor) { p.come <- v }

// serve decides for those who come until finish is called.
func (p *pool) serve() (finish func()) {
	for _, c := range p.conns {
		p.wg.Go(func() {
			in := bufio.NewReader(c)
			for v := range p.come {
				err := ask(c, in, p.call)
				p.mu.Lock()
				v.answered(err == nil)
				p.failed = errors.Join(p.failed, err)
				p.mu.Unlock()
			}
		})
	}
	return func() {
		close(p.come)
		p.wg.Wait()
	}
}

// ask makes one call, and takes in the answer, which is a number.
func ask(out io.Writer, in *bufio.Reader, call []byte) error {
	if _, err := out.Write(call); err != nil {
		return err
	}
	line, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if line[0] != ':' || line[1] == '0' {
		return fmt.Errorf("redis answers %q", line)
	}
	return nil
}

// most has every connection make one call after the other, and returns how many there were
// a second. Nobody waits for a connection, and no load is in the way.
func (r *redis) most(ctx context.Context, call []byte, lasts time.Duration) (s spell, err error) {
	p, err := dialRedis(r.addr, call)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	counts := make([]int64, connections)
	errs := make([]error, connections)
	server, err := r.CPU()
	if err != nil {
		return s, err
	}
	start, before := time.Now(), rig.Own()
	for i, c := range p.conns {
		p.wg.Go(func() {
			in := bufio.NewReader(c)
			for ctx.Err() == nil && errs[i] == nil {
				errs[i] = ask(c, in, call)
				counts[i]++
			}
		})
	}
	p.wg.Wait()
	for _, n := range counts {
		s.Given += n
	}
	s.Came, s.Lasted = s.Given, time.Since(start)
	n := time.Duration(max(1, s.Came))
	s.CPU = (rig.Own() - before) / n
	later, err := r.CPU()
	s.Server = (later - server) / n
	return s, errors.Join(append(errs, err)...)
}

// open has visitors come at a rate.
func (r *redis) open(ctx context.Context, call []byte, perSecond float64, lasts time.Duration) (s spell, err error) {
	p, err := dialRedis(r.addr, call)
	if err != nil {
		return s, err
	}
	server, err := r.CPU()
	if err != nil {
		return s, errors.Join(err, p.close())
	}
	finish := p.serve()
	s, err = newLoad().open(ctx, []*lane{{decider: p}}, perSecond, lasts)
	later, cpuErr := r.CPU()
	s.Server = (later - server) / time.Duration(max(1, s.Came))
	finish()
	return s, errors.Join(err, cpuErr, p.close())
}

// benchmarked returns how many calls a second redis-benchmark makes with as many connections,
// without pipelining: what a client in C gets. ok is false where there is none.
func (r *redis) benchmarked(ctx context.Context, calls int) (perSecond float64, ok bool) {
	host, port, _ := net.SplitHostPort(r.addr)
	out, err := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "-c", strconv.Itoa(connections),
		"-n", strconv.Itoa(calls), "--csv", "INCR", "visitors").Output()
	if err != nil {
		return 0, false
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	fields := strings.Split(lines[len(lines)-1], `","`)
	if len(fields) < 2 {
		return 0, false
	}
	perSecond, err = strconv.ParseFloat(strings.Trim(fields[1], `"`), 64)
	return perSecond, err == nil
}
