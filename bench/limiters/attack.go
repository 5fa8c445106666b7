package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// An attack of one source through HTTP: visitors come at an even rate, and are measured from
// when they were to come; one source comes beyond a limit, from another address.

const (
	attackBegin = "<!-- begin: written by make limit-attack -->"

	visitorRate  = 500 // a second
	visitorConns = 32
	attackConns  = 8
)

var attackRates = []int{0, 5_000, 10_000, 20_000, 40_000}

// attack measures each rate in turn, in rounds, and returns a table.
func attack(ctx context.Context, dir, binary string, rounds int, lasts time.Duration) (string, error) {
	p, err := startAttacked(ctx, dir, binary)
	if err != nil {
		return "", err
	}
	defer p.stop()
	if err := await(ctx, "http://"+address+"/"); err != nil {
		return "", fmt.Errorf("%w\n%s", err, p.log.String())
	}
	found := make([][]spell, len(attackRates))
	for range rounds {
		for i, rate := range attackRates {
			s, err := oneSpell(ctx, rate, lasts)
			if err != nil {
				return "", fmt.Errorf("at %d a second: %w", rate, err)
			}
			found[i] = append(found[i], s)
		}
	}
	return attackTable(found, rounds), nil
}

func startAttacked(ctx context.Context, dir, binary string) (*process, error) {
	file := filepath.Join(dir, "attacked.yaml")
	const limit = `suspended: true
rate-limits:
  - {name: attack, expression: 'ip.src eq 127.0.0.2', characteristics: [ip.src], period: 1m, requests-per-period: 100, mitigation-timeout: 1h}
  - {name: all, expression: 'true', characteristics: [ip.src], period: 1m, requests-per-period: 1000000}
`
	if err := os.WriteFile(file, []byte(limit), 0o600); err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp(dir, "data")
	if err != nil {
		return nil, err
	}
	return start(ctx, ofServer, []string{"GOMAXPROCS=1"}, binary, "run", "--config", file, "--origin", "http://"+site,
		"--listen", address, "--admin", "127.0.0.1:24982", "--data-dir", data)
}

// spell is what visitors met while a source came so often.
type spell struct {
	p50, p99 time.Duration
	attacks  float64 // a second, that were answered
}

func oneSpell(ctx context.Context, rate int, lasts time.Duration) (s spell, err error) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var answered atomic.Int64
	errs := make([]error, attackConns)
	var wg sync.WaitGroup
	if rate > 0 {
		for i := range attackConns {
			wg.Go(func() { errs[i] = attackOn(ctx, rate/attackConns, &answered) })
		}
	}
	took, err := visits(ctx)
	cancel()
	wg.Wait()
	if err = errors.Join(append(errs, err)...); err != nil {
		return s, err
	}
	slices.Sort(took)
	return spell{took[len(took)/2], took[len(took)*99/100], float64(answered.Load()) / lasts.Seconds()}, nil
}

// dial connects from an address of this machine.
func dial(from string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return d.Dial("tcp", address)
}

const request = "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"

// attackOn sends requests at an even rate, without waiting for answers: on one connection
// after the other, since servers take only so many on each.
func attackOn(ctx context.Context, rate int, answered *atomic.Int64) error {
	for ctx.Err() == nil {
		if err := attackOnce(ctx, rate, answered); err != nil {
			return err
		}
	}
	return nil
}

func attackOnce(ctx context.Context, rate int, answered *atomic.Int64) error {
	c, err := dial("127.0.0.2")
	if err != nil {
		return err
	}
	defer c.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		r := bufio.NewReaderSize(c, 64<<10)
		for {
			line, err := r.ReadSlice('\n')
			if bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
				answered.Add(1)
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return
			}
		}
	})
	defer wg.Wait()
	defer c.Close()
	sent := 0
	for begun := time.Now(); ctx.Err() == nil; time.Sleep(time.Millisecond) {
		due := int(time.Since(begun).Seconds()*float64(rate)) - sent
		if due <= 0 {
			continue
		}
		if _, err := io.WriteString(c, strings.Repeat(request, due)); err != nil {
			return nil // the server has closed it
		}
		sent += due
	}
	return nil
}

// visits has visitors come at an even rate until ctx ends, and returns how long each had to
// wait for the answer, from when it was to come.
func visits(ctx context.Context) ([]time.Duration, error) {
	free := make(chan *visitor, visitorConns)
	for range visitorConns {
		c, err := dial("127.0.0.1")
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

func attackTable(found [][]spell, rounds int) string {
	var b bytes.Buffer
	fmt.Fprintln(&b, "| attacks a second, answered | visitors: p50 | p99 | p99 by that without an attack |\n|---|---|---|---|")
	of := func(i int, get func(spell) float64) float64 {
		values := make([]float64, len(found[i]))
		for j, s := range found[i] {
			values[j] = get(s)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	for i := range attackRates {
		// Within a round, since machines are noisy.
		ratios := make([]float64, len(found[i]))
		for j := range found[i] {
			ratios[j] = float64(found[i][j].p99) / float64(found[0][j].p99)
		}
		slices.Sort(ratios)
		fmt.Fprintf(&b, "| %.0f | %.2f ms | %.2f ms | × %.2f |\n", of(i, func(s spell) float64 { return s.attacks }),
			of(i, func(s spell) float64 { return s.p50.Seconds() * 1e3 }), of(i, func(s spell) float64 { return s.p99.Seconds() * 1e3 }), ratios[len(ratios)/2])
	}
	fmt.Fprintf(&b, "\nMedians of %d rounds; %d visitors a second on %d connections, measured from when they were to come.\n", rounds, visitorRate, visitorConns)
	return b.String()
}
