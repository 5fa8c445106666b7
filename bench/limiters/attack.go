package limiters

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// An attack of one source through HTTP: visitors come at an even rate, and are measured from
// when they were to come; one source comes beyond a limit. It says by PROXY headers who it
// is, as all that is on this machine is trusted.

const (
	visitorRate  = 2000 // a second
	visitorConns = 64
	attackConns  = 8
	attackOpen   = 400 // of those that have a connection each
)

// onslaught is one way of attacking.
type onslaught struct {
	rate      int  // requests a second
	reconnect bool // each on a connection of its own
	decoy     bool // at another server beside ours: what attacking takes from visitors
}

var onslaughts = []onslaught{
	{}, {rate: 5_000}, {rate: 10_000}, {rate: 20_000}, {rate: 40_000},
	{rate: 1_000, reconnect: true}, {rate: 1_000, reconnect: true, decoy: true},
	{},
}

// attack measures each onslaught in turn, in rounds.
func attack(ctx context.Context, r *measurement.Run, dir string, rounds int, lasts time.Duration) error {
	p, err := startAttacked(ctx, dir, r.Binary)
	if err != nil {
		return err
	}
	defer p.Stop()
	if err := p.Await(ctx, "http://"+address+"/"); err != nil {
		return err
	}
	other, err := rig.StartNginx(ctx, rig.OfServer, filepath.Join(dir, "decoy"), rig.NginxConfig{HTTP: fmt.Sprintf("server { listen %s proxy_protocol; return 429; }", decoy)})
	if err != nil {
		return err
	}
	defer other.Stop()
	found := make([][]spell, len(onslaughts))
	for range rounds {
		for i, o := range onslaughts {
			s, err := oneSpell(ctx, o, lasts)
			if err != nil {
				return fmt.Errorf("at %d a second: %w", o.rate, err)
			}
			r.Add(measurement.Row("attack", strings.TrimPrefix(fmt.Sprint(o.rate, "/s", o.how(i)), "0/s, ")), measurement.Values{"p50-sec": s.p50.Seconds(), "p99-sec": s.p99.Seconds(), "attacks/s": s.sent})
			found[i] = append(found[i], s)
		}
	}
	return r.Table(attackTable(found, rounds))
}

func startAttacked(ctx context.Context, dir, binary string) (*rig.Process, error) {
	const limit = `suspended: true
rate-limits:
  - {name: attack, expression: 'ip.src eq 192.0.2.1', characteristics: [ip.src], period: 1m, requests-per-period: 100, mitigation-timeout: 1h}
  - {name: all, expression: 'true', characteristics: [ip.src], period: 1m, requests-per-period: 1000000}
`
	return rig.StartNode(ctx, rig.NodeConfig{Binary: binary, Listen: address, Admin: "127.0.0.1:24982", Site: site, Dir: dir, Config: limit,
		Args: []string{"--proxy-protocol", attacker}})
}

// spell is what visitors met while a source came so often.
type spell struct {
	p50, p99       time.Duration
	sent, answered float64 // attacks a second
}

func oneSpell(ctx context.Context, o onslaught, lasts time.Duration) (s spell, err error) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	n := attacks{at: address}
	if o.decoy {
		n.at = decoy
	}
	errs := make([]error, attackConns)
	var wg sync.WaitGroup
	if o.rate > 0 {
		for i := range attackConns {
			wg.Go(func() { errs[i] = n.run(ctx, o) })
		}
	}
	took, err := visits(ctx)
	cancel()
	wg.Wait()
	if err = errors.Join(append(errs, err)...); err != nil {
		return s, err
	}
	slices.Sort(took)
	return spell{took[len(took)/2], took[len(took)*99/100], float64(n.sent.Load()) / lasts.Seconds(), float64(n.answered.Load()) / lasts.Seconds()}, nil
}

// dial connects from an address of this machine.
func dial(from, to string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return d.Dial("tcp", to)
}

const (
	decoy    = "127.0.0.1:24983"
	attacker = "127.0.0.2"
	proxied  = "PROXY TCP4 192.0.2.1 192.0.2.2 40000 80\r\n"
	request  = "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"
)

// attacks is what the source does that attacks.
type attacks struct {
	at             string
	sent, answered atomic.Int64
}

// run does its part of an onslaught until ctx ends.
func (n *attacks) run(ctx context.Context, o onslaught) error {
	begun, sent := time.Now(), 0
	due := func() int {
		k := int(time.Since(begun).Seconds()*float64(o.rate)/attackConns) - sent
		sent += k
		return k
	}
	if o.reconnect {
		return n.reconnect(ctx, due)
	}
	for ctx.Err() == nil {
		if err := n.stream(ctx, due); err != nil {
			return err
		}
	}
	return nil
}

// stream sends what is due on one connection without waiting for answers, until the server
// has had enough.
func (n *attacks) stream(ctx context.Context, due func() int) error {
	c, err := n.dial()
	if err != nil {
		return err
	}
	var reads sync.WaitGroup
	reads.Go(func() { n.read(c, false) })
	defer reads.Wait()
	defer c.Close()
	for ctx.Err() == nil {
		k := due()
		c.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := io.WriteString(c, strings.Repeat(request, k)); err != nil {
			return nil // the server has closed it, or reads no more
		}
		n.sent.Add(int64(k))
		time.Sleep(time.Millisecond)
	}
	return nil
}

// reconnect sends each request on a connection of its own, without waiting for answers.
func (n *attacks) reconnect(ctx context.Context, due func() int) error {
	var under sync.WaitGroup
	defer under.Wait()
	open := make(chan struct{}, attackOpen/attackConns)
	for ctx.Err() == nil {
		for range due() {
			open <- struct{}{}
			c, err := n.dial()
			if err != nil {
				return err
			}
			if _, err := io.WriteString(c, request); err != nil {
				return err
			}
			n.sent.Add(1)
			under.Go(func() {
				n.read(c, true)
				c.Close()
				<-open
			})
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func (n *attacks) dial() (net.Conn, error) {
	c, err := dial(attacker, n.at)
	if err != nil {
		return nil, err
	}
	c.(*net.TCPConn).SetLinger(0) // ports are not kept
	if _, err := io.WriteString(c, proxied); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// read counts answers until the connection ends, or only the first.
func (n *attacks) read(c net.Conn, one bool) {
	r := bufio.NewReaderSize(c, 64<<10)
	for {
		line, err := r.ReadSlice('\n')
		if bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
			n.answered.Add(1)
			if one {
				return
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// visits has visitors come at an even rate until ctx ends, and returns how long each had to
// wait for the answer, from when it was to come.
func visits(ctx context.Context) ([]time.Duration, error) {
	free := make(chan *visitor, visitorConns)
	for range visitorConns {
		c, err := dial("127.0.0.1", address)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		free <- &visitor{c, bufio.NewReader(c)}
	}
	var mu sync.Mutex // guards the following
	var took []time.Duration
	var failed error
	var wg sync.WaitGroup
	next := time.Now()
	for ctx.Err() == nil {
		next = next.Add(time.Second / visitorRate)
		time.Sleep(time.Until(next))
		v, due := <-free, next
		wg.Go(func() {
			err := v.visit()
			d := time.Since(due)
			free <- v
			mu.Lock()
			defer mu.Unlock()
			took, failed = append(took, d), errors.Join(failed, err)
		})
	}
	wg.Wait()
	return took, failed
}

type visitor struct {
	conn net.Conn
	in   *bufio.Reader
}

func (v *visitor) visit() error {
	if _, err := io.WriteString(v.conn, request); err != nil {
		return err
	}
	resp, err := http.ReadResponse(v.in, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("a visitor got %s", resp.Status)
	}
	return nil
}

// how says what is special about the onslaught at index i.
func (o onslaught) how(i int) string {
	switch {
	case o.decoy:
		return ", at nginx on the same processor instead"
	case o.reconnect:
		return ", each on a connection of its own"
	case i > 0 && o.rate == 0:
		return ", once more"
	}
	return ""
}

func attackTable(found [][]spell, rounds int) string {
	var b bytes.Buffer
	fmt.Fprintln(&b, "| attacks a second | answered | visitors: p50 | p99 | p99 by that without an attack |\n|---|---|---|---|---|")
	of := func(i int, get func(int) float64) float64 {
		values := make([]float64, len(found[i]))
		for j := range found[i] {
			values[j] = get(j)
		}
		return measurement.Median(values)
	}
	for i, o := range onslaughts {
		all := found[i]
		fmt.Fprintf(&b, "| %.0f%s | %.0f | %.2f ms | %.2f ms | × %.2f |\n",
			of(i, func(j int) float64 { return all[j].sent }), o.how(i), of(i, func(j int) float64 { return all[j].answered }),
			of(i, func(j int) float64 { return all[j].p50.Seconds() * 1e3 }), of(i, func(j int) float64 { return all[j].p99.Seconds() * 1e3 }),
			of(i, func(j int) float64 { return float64(all[j].p99) / float64(found[0][j].p99) })) // within a round, since machines are noisy
	}
	fmt.Fprintf(&b, "\nMedians of %d rounds; %d visitors a second on %d connections, measured from when they were to come.\n", rounds, visitorRate, visitorConns)
	return b.String()
}
