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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rate"
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

	decoy    = "127.0.0.1:24983"
	attacker = "127.0.0.2"
	proxied  = "PROXY TCP4 192.0.2.1 192.0.2.2 40000 80\r\n"
	request  = "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"
)

// onslaught is one way of attacking.
type onslaught struct {
	name      string
	rate      int    // requests a second
	reconnect bool   // each on a connection of its own
	at        string // where
}

var onslaughts = []onslaught{
	{name: "none"}, {"5000/s", 5_000, false, address}, {"10000/s", 10_000, false, address}, {"20000/s", 20_000, false, address}, {"40000/s", 40_000, false, address},
	{"1000/s, each on a connection of its own", 1_000, true, address},
	{"1000/s, at nginx on the same processor instead", 1_000, true, decoy}, // what attacking takes from visitors
	{name: "none, once more"},
}

// attack measures each onslaught in turn, in rounds.
func attack(ctx context.Context, b *bench) {
	const limit = `suspended: true
rate-limits:
  - {name: attack, expression: 'ip.src eq 192.0.2.1', characteristics: [ip.src], period: 1m, requests-per-period: 100, mitigation-timeout: 1h}
  - {name: all, expression: 'true', characteristics: [ip.src], period: 1m, requests-per-period: 1000000}
`
	p := rig.Got(rig.StartNode(ctx, rig.NodeConfig{Binary: b.Binary, Listen: address, Admin: "127.0.0.1:24982", Site: site, Dir: b.dir, Config: limit,
		Args: []string{"--proxy-protocol", attacker}}))
	defer p.Stop()
	rig.Must(p.Await(ctx, "http://"+address+"/"))
	other := rig.Got(rig.StartNginx(ctx, rig.OfServer, filepath.Join(b.dir, "decoy"), rig.NginxConfig{HTTP: fmt.Sprintf("server { listen %s proxy_protocol; return 429; }", decoy)}))
	defer other.Stop()
	for range b.rounds {
		alone := 0.0
		for _, o := range onslaughts {
			n := attacks{onslaught: o}
			got, err := n.beside(ctx, b.lasts)
			if err != nil {
				rig.Must(fmt.Errorf("beside an attack of %s: %w", o.name, err))
			}
			if alone == 0 {
				alone = got.Latency.P99
			}
			b.Add(measurement.Row("attack", o.name), measurement.Values{
				"attacks/s": float64(n.sent.Load()) / b.lasts.Seconds(), "answers/s": float64(n.answered.Load()) / b.lasts.Seconds(),
				"p50-sec": got.Latency.P50 / 1e6, "p99-sec": got.Latency.P99 / 1e6, "p99-of-none": got.Latency.P99 / alone})
		}
	}
}

// beside returns what visitors meet while a source attacks.
func (n *attacks) beside(ctx context.Context, lasts time.Duration) (rate.Result, error) {
	attacking, stop := context.WithCancel(ctx)
	errs := make([]error, attackConns)
	var wg sync.WaitGroup
	if n.rate > 0 {
		for i := range attackConns {
			wg.Go(func() { errs[i] = rig.Try(func() { n.run(attacking) }) })
		}
	}
	got, err := rate.Run(ctx, rate.Config{Address: address, Requests: [][]byte{[]byte(request)}, Conns: visitorConns, Rate: visitorRate, Lasts: lasts})
	stop()
	wg.Wait()
	if err == nil && got.Status[http.StatusOK] != got.Due {
		err = fmt.Errorf("of %d visitors %d were not answered: %s; the others got %v", got.Due, got.Failed(), got.LastError, got.Status)
	}
	return got, errors.Join(append(errs, err)...)
}

// attacks is what the source does that attacks.
type attacks struct {
	onslaught
	sent, answered atomic.Int64
}

// run does its part of an onslaught until ctx ends.
func (n *attacks) run(ctx context.Context) {
	begun, sent := time.Now(), 0
	due := func() int {
		k := int(time.Since(begun).Seconds()*float64(n.rate)/attackConns) - sent
		sent += k
		return k
	}
	if n.reconnect {
		n.connect(ctx, due)
		return
	}
	for ctx.Err() == nil {
		n.stream(ctx, due)
	}
}

// stream sends what is due on one connection without waiting for answers, until the server
// has had enough.
func (n *attacks) stream(ctx context.Context, due func() int) {
	c := n.dial()
	var reads sync.WaitGroup
	reads.Go(func() { n.read(c, false) })
	defer reads.Wait()
	defer c.Close()
	for ctx.Err() == nil {
		k := due()
		c.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := io.WriteString(c, strings.Repeat(request, k)); err != nil {
			return // the server has closed it, or reads no more
		}
		n.sent.Add(int64(k))
		time.Sleep(time.Millisecond)
	}
}

// connect sends each request on a connection of its own, without waiting for answers.
func (n *attacks) connect(ctx context.Context, due func() int) {
	var under sync.WaitGroup
	defer under.Wait()
	open := make(chan struct{}, attackOpen/attackConns)
	for ctx.Err() == nil {
		for range due() {
			open <- struct{}{}
			c := n.dial()
			rig.Got(io.WriteString(c, request))
			n.sent.Add(1)
			under.Go(func() {
				n.read(c, true)
				c.Close()
				<-open
			})
		}
		time.Sleep(time.Millisecond)
	}
}

func (n *attacks) dial() net.Conn {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(attacker)}}
	c := rig.Got(d.Dial("tcp", n.at))
	c.(*net.TCPConn).SetLinger(0) // ports are not kept
	rig.Got(io.WriteString(c, proxied))
	return c
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
