package suite

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/machine"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/serve"
)

// Config says how a benchmark is run.
type Config struct {
	Binary string        // the program of ropeline
	Self   string        // that of the benchmarks, which is also the servers in Go beside it
	Caddy  string        // the program
	Rounds int           // how often each server is measured
	Lasts  time.Duration // how long each time
	Warm   time.Duration // how long it is asked before
	// SelfTest is how long each try of the generator's self-test takes, of which there are some fifty. 0: there is none.
	SelfTest time.Duration
	// Only measures rows whose name has this text in it. Empty: all.
	Only string
	Tell func(format string, args ...any) // of what goes on
}

// Run measures b. Where ctx ends before, there is no result.
func Run(ctx context.Context, b Benchmark, c Config) (*Result, error) {
	dir, err := os.MkdirTemp("", "ropeline-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &Result{Name: b.Name, Title: b.Title, Question: b.Question, Method: b.Method, Base: b.base, figure: b.figure, Made: time.Now().UTC().Truncate(time.Second),
		Rounds: c.Rounds, Seconds: c.Lasts.Seconds()}
	h := harness{Config: c, dir: dir, recorded: map[string]serve.Answer{}}
	if r.SelfTest, err = testItself(ctx, c); err != nil {
		return nil, err
	}
	endSite, err := h.startSite(ctx, b)
	if err != nil {
		return nil, err
	}
	defer endSite()
	entries := h.choose(b, r)
	for round := range c.Rounds {
		for i, e := range entries {
			row := &r.Rows[i]
			if len(row.Missing) > 0 {
				continue
			}
			s, err := h.measure(ctx, e, r)
			for try := 1; errors.Is(err, errUnanswered) && try < tries; try++ {
				c.Tell("once more, since the machine had no time for it: %s", row.name())
				s, err = h.measure(ctx, e, r)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", row.name(), err)
			}
			c.Tell("round %d of %d: %s: %.1f µs, %.0f/s", round+1, c.Rounds, row.name(), s.CPU, s.Rate)
			row.Samples = append(row.Samples, s)
		}
	}
	for i := range b.checks {
		r.Checks = append(r.Checks, b.checks[i].run(r))
	}
	r.Machine = machine.Of(ctx, map[string][]string{"nginx": {"nginx", "-v"}, "HAProxy": {"haproxy", "-v"}, "Redis": {"redis-server", "--version"}, "Caddy": {c.Caddy, "version"}})
	return r, nil
}

// tries is how often a server is started that does not answer at all.
const tries = 3

// harness is what all measurements of a run share.
type harness struct {
	Config
	dir      string
	site     string
	recorded map[string]serve.Answer // of [place]
}

// startSite starts the origin, if b has a use for it, and returns what ends it. Its address is a free one in any case.
func (h *harness) startSite(ctx context.Context, b Benchmark) (end func(), err error) {
	end = func() {}
	if h.site, err = rig.Free(); err != nil || !b.site {
		return end, err
	}
	if missing := rig.Missing("nginx"); len(missing) > 0 {
		return end, fmt.Errorf("the site cannot be run: %s is missing", missing[0])
	}
	site, err := rig.StartSite(ctx, filepath.Join(h.dir, "site"), h.site)
	if site != nil {
		end = func() { _ = site.Stop() }
	}
	return end, err
}

// choose returns the entries to measure, whose rows are those of r.
func (h *harness) choose(b Benchmark, r *Result) (chosen []entry) {
	for _, e := range b.entries {
		row := e.row()
		if !strings.Contains(row.name(), h.Only) {
			continue
		}
		for _, name := range e.needs {
			if name == "caddy" {
				name = h.Caddy
			}
			row.Missing = append(row.Missing, rig.Missing(name)...)
		}
		chosen, r.Rows = append(chosen, e), append(r.Rows, row)
	}
	return chosen
}

// measure starts a server, has it asked, and ends it.
func (h *harness) measure(ctx context.Context, e entry, r *Result) (s Sample, err error) {
	due, err := e.due(r)
	if err != nil {
		return s, err
	}
	p, err := h.place()
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(p.dir)
	sub, err := e.start(ctx, p)
	if sub != nil {
		defer func() { err = errors.Join(err, sub.end()) }()
	}
	if err != nil {
		return s, err
	}
	address := cmp.Or(sub.address, p.listen)
	if err := sub.look(ctx, address); err != nil {
		return s, err
	}
	shot := shot{address: address, heads: sub.heads, turn: sub.turn, conns: e.row().Conns, rate: due, code: sub.wants()}
	if s, err = h.shoot(ctx, sub, shot); err != nil {
		return s, err
	}
	if err := sub.look(ctx, address); err != nil {
		return s, fmt.Errorf("afterwards: %w", err)
	}
	if sub.after != nil {
		if err := sub.after(ctx); err != nil {
			return s, fmt.Errorf("afterwards: %w", err)
		}
	}
	return s, nil
}

// shoot has a server asked until all is warm, and then for as long as counts.
func (h *harness) shoot(ctx context.Context, sub *subject, what shot) (s Sample, err error) {
	shoot := send
	if sub.send != nil {
		shoot = sub.send
	}
	what.lasts = h.Warm
	if _, err := shoot(ctx, what); err != nil {
		return s, err
	}
	collected := sub.collecting()
	before, err := sub.usage()
	if err != nil {
		return s, err
	}
	begun := time.Now()
	what.lasts = h.Lasts
	got, err := shoot(ctx, what)
	if err != nil {
		return s, err
	}
	passed := time.Since(begun)
	after, err := sub.usage()
	if err != nil {
		return s, err
	}
	used := after.Sub(before)
	s = sampleOf(got, used, passed)
	s.Wanted, s.Processes = rounded(what.rate, 1), len(sub.parts)
	if used.CPU > 0 {
		s.GC = rounded((sub.collecting()-collected).Seconds()/used.CPU.Seconds(), 1e4)
	}
	return s, nil
}

// due is how many requests a second are due to an entry, by what was measured in this round; 0: as many as can be.
func (e *entry) due(r *Result) (float64, error) {
	if e.halfOf == "" {
		return 0, nil
	}
	row := r.row(e.halfOf)
	if row == nil || len(row.Samples) == 0 {
		return 0, fmt.Errorf("it goes by the rate of %q, which was not measured", e.halfOf)
	}
	return row.Samples[len(row.Samples)-1].Rate / 2, nil
}

func sampleOf(got answers, used rig.Usage, passed time.Duration) Sample {
	millis := func(d time.Duration) float64 { return rounded(d.Seconds()*1e3, 1e3) }
	return Sample{
		Rate: rounded(got.rate, 1), CPU: rounded(used.CPU.Seconds()*1e6/float64(max(got.answered, 1)), 1e3),
		P50: millis(got.p50), P99: millis(got.p99), P999: millis(got.p999),
		Answered: got.answered, Bad: got.bad, Failed: got.failed, Warning: got.warning,
		Waited: rounded(used.Waited.Seconds()/passed.Seconds(), 1e3), Generator: rounded(got.generator, 1e3), Late: millis(got.late),
		Sender: rounded(got.sender.Seconds()*1e6, 1e3),
	}
}

// place returns where the next server runs.
func (h *harness) place() (*place, error) {
	dir, err := os.MkdirTemp(h.dir, "server")
	if err != nil {
		return nil, err
	}
	p := &place{dir: dir, binary: h.Binary, self: h.Self, caddy: h.Caddy, site: h.site, recorded: h.recorded}
	for _, a := range []*string{&p.listen, &p.admin} {
		if *a, err = rig.Free(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// end ends all that was started for s.
func (s *subject) end() (err error) {
	for _, p := range s.parts {
		err = errors.Join(err, p.Stop())
	}
	if s.close != nil {
		err = errors.Join(err, s.close())
	}
	return err
}

func (s *subject) usage() (total rig.Usage, err error) {
	for _, p := range s.parts {
		u, err := p.Usage()
		if err != nil {
			return total, err
		}
		total = total.Add(u)
	}
	return total, nil
}

// collecting is what its nodes have spent so far on collecting garbage.
func (s *subject) collecting() (total time.Duration) {
	for _, p := range s.nodes {
		total += collecting(p.Log())
	}
	return total
}

// wants is the code that answers have to have.
func (s *subject) wants() int { return cmp.Or(s.code, http.StatusOK) }

// look sends one of the requests, and returns what is wrong with its answer.
func (s *subject) look(ctx context.Context, address string) error {
	if len(s.heads) == 0 {
		return nil // it does not speak HTTP
	}
	resp, err := ask(ctx, address, s.heads[0])
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != s.wants() {
		return fmt.Errorf("the answer is %s, and %d is wanted", resp.Status, s.wants())
	}
	if s.probe != nil {
		return s.probe(resp)
	}
	return nil
}

// ask sends a request as it is, on a connection of its own. The body of the answer is to be closed.
func ask(ctx context.Context, address string, head []byte) (*http.Response, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(askTime))
	if _, err := conn.Write(head); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	resp.Body = &closing{resp.Body, conn}
	return resp, nil
}

// askTime is how long one answer may take.
const askTime = 10 * time.Second
