package suite

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

const (
	visitorRate = 2000 // a second
	attackConns = 8
	attackOpen  = 400 // of those that have a connection each

	attacker = "127.0.0.2"
	proxied  = "PROXY TCP4 192.0.2.1 192.0.2.2 40000 80\r\n" // by which a source says who it is, as all that is on this machine is trusted

	attacksPerSecond, repliesPerSecond = "attacks/s", "answers/s"
)

// onslaught is one way of attacking.
type onslaught struct {
	name      string
	rate      int  // requests a second
	reconnect bool // each on a connection of its own
	decoy     bool // at an nginx on the same processor instead
}

const noAttack = "none"

var onslaughts = []onslaught{
	{name: noAttack},
	{name: "5000/s", rate: 5_000},
	{name: "10000/s", rate: 10_000},
	{name: "20000/s", rate: 20_000},
	{name: "40000/s", rate: 40_000},
	{name: "1000/s, each on a connection of its own", rate: 1_000, reconnect: true},
	{name: "1000/s, at nginx on the same processor instead", rate: 1_000, reconnect: true, decoy: true}, // what attacking takes from visitors
	{name: "none, once more"},
}

// attack is what visitors notice while one source comes beyond a limit.
func attack() benchmark {
	b := benchmark{
		name: "limit-attack", page: limitPage, site: true,
		question: "What do visitors notice while one source comes beyond a rate limit?",
		method: fmt.Sprintf("Through HTTP, with the server on one core, and visitors, the attack and the site on the other. %d visitors a second come at an even rate on %d connections and are measured from when they were to come; "+
			"the attack goes on whether it is answered or not. Processor time of the node for each request is told by those of visitors, and has that of the attack in it.", visitorRate, usualConns),
		units: []measurement.Unit{{Name: attacksPerSecond, Meaning: "requests of the attack"}, {Name: repliesPerSecond, Meaning: "answers to it"}},
		ratios: []ratio{{
			measurement.Unit{Name: "p99-of-none", Meaning: "p99 by what it is without an attack, within a round", Better: "lower"},
			func(*entry) string { return noAttack }, func(s, none sample) float64 { return s[p99] / none[p99] },
		}},
	}
	for _, o := range onslaughts {
		b.entries = append(b.entries, entry{what: o.name, start: func(p *place) *subject { return startAttacked(p, o) }})
	}
	return b
}

// startAttacked starts a node whose visitors are asked for while a source attacks.
func startAttacked(p *place, o onslaught) *subject {
	const limit = `suspended: true
rate-limits:
  - {name: attack, expression: 'ip.src eq 192.0.2.1', characteristics: [ip.src], period: 1m, requests-per-period: 100, mitigation-timeout: 1h}
  - {name: all, expression: 'true', characteristics: [ip.src], period: 1m, requests-per-period: 1000000}
`
	sub := asNode(p.proxied(startNode(p, limit, "--proxy-protocol", attacker)))
	at := p.listen
	if o.decoy {
		at = rig.Got(rig.Free())
		decoy := p.runs(rig.StartNginx(p.ctx, rig.OfServer, filepath.Join(p.dir, "decoy"), rig.NginxConfig{HTTP: fmt.Sprintf("server { listen %s proxy_protocol; return 429; }", at)}))
		rig.Must(decoy.AwaitListener(p.ctx, at))
	}
	sub.send = func(ctx context.Context, s shot) (answers, error) {
		n := attacks{onslaught: o, at: at}
		return n.beside(ctx, s)
	}
	return sub
}

// attacks is what the source does that attacks.
type attacks struct {
	onslaught
	at             string // where
	sent, answered atomic.Int64
}

// beside returns what visitors meet while a source attacks.
func (n *attacks) beside(ctx context.Context, s shot) (answers, error) {
	attacking, stop := context.WithCancel(ctx)
	errs := make([]error, attackConns)
	var wg sync.WaitGroup
	if n.rate > 0 {
		for i := range attackConns {
			wg.Go(func() { errs[i] = rig.Try(func() { n.run(attacking) }) })
		}
	}
	s.rate = visitorRate
	got, err := send(ctx, s)
	stop()
	wg.Wait()
	if err == nil {
		got.sample[attacksPerSecond], got.sample[repliesPerSecond] = float64(n.sent.Load())/s.lasts.Seconds(), float64(n.answered.Load())/s.lasts.Seconds()
		if got.sample[bad] > 0 {
			err = fmt.Errorf("beside an attack of %s %.0f visitors were not answered, or not by the site", n.name, got.sample[bad])
		}
	}
	return got, errors.Join(append(errs, err)...)
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
		if _, err := io.WriteString(c, strings.Repeat(string(head("")), k)); err != nil {
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
			rig.Got(c.Write(head("")))
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
