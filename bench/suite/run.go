package suite

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rate"
	"github.com/ropeline/ropeline/bench/rig"
)

// config says how a benchmark is run.
type config struct {
	rounds int           // how often each server is measured
	lasts  time.Duration // how long each time
	only   string        // measures rows with this text in their names; empty: all
	line   int           // and none with more who wait
}

const (
	warm  = time.Second // how long a server is asked before anything counts, or as long as then if that is less
	tries = 3           // how often a server is started that does not answer at all
)

// harness is what all measurements of a run share.
type harness struct {
	config
	run      *measurement.Run
	caddy    string // the program
	dir      string
	site     string               // host:port of the origin
	samples  map[string][]sample  // by the name of the row, one of each round
	recorded map[string]recording // that servers are to give, by what they are of
}

// measure measures all servers of b, in each round.
func (h *harness) measure(ctx context.Context, b benchmark) (err error) {
	if h.dir, err = os.MkdirTemp("", "ropeline-bench"); err != nil {
		return err
	}
	defer os.RemoveAll(h.dir)
	h.recorded = map[string]recording{}
	if h.site, err = rig.Free(); err != nil {
		return err
	}
	if b.site {
		site, err := rig.StartSite(ctx, filepath.Join(h.dir, "site"), h.site)
		if site != nil {
			defer func() { _ = site.Stop() }()
		}
		if err != nil {
			return err
		}
	}
	entries := h.choose(b)
	for round := range h.rounds {
		for _, e := range entries {
			s, err := h.one(ctx, e)
			for try := 1; errors.Is(err, errUnanswered) && try < tries; try++ {
				h.run.Tell("once more, since the machine had no time for it: %s", e.name())
				s, err = h.one(ctx, e)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", e.name(), err)
			}
			h.run.Tell("round %d of %d: %s: %.1f µs, %.0f/s", round+1, h.rounds, e.name(), s[cpu]*1e6, s[perSecond])
			h.samples[e.name()] = append(h.samples[e.name()], s)
		}
	}
	return nil
}

// choose returns the entries to measure, and says which cannot be.
func (h *harness) choose(b benchmark) (chosen []entry) {
	for _, e := range b.entries {
		if !strings.Contains(e.name(), h.only) || e.line > h.line {
			continue
		}
		var missing []string
		for _, name := range e.needs {
			if name == "caddy" {
				name = h.caddy
			}
			missing = append(missing, rig.Missing(name)...)
		}
		if len(missing) > 0 {
			h.run.Note("%s is not measured: %s is missing.", e.name(), strings.Join(missing, ", "))
			continue
		}
		chosen = append(chosen, e)
	}
	return chosen
}

// one starts a server, has it asked, and ends it.
func (h *harness) one(ctx context.Context, e entry) (s sample, err error) {
	p := &place{harness: h, ctx: ctx}
	defer func() { err = errors.Join(err, p.end()) }()
	err = rig.Try(func() {
		p.dir, p.listen, p.admin = rig.Got(os.MkdirTemp(h.dir, "server")), rig.Got(rig.Free()), rig.Got(rig.Free())
		due := rig.Got(h.due(e))
		sub := e.start(p)
		load := rate.Config{Address: cmp.Or(sub.address, p.listen), Requests: sub.heads, OnePerConn: sub.onePerConn, Conns: cmp.Or(e.conns, usualConns), Rate: due}
		rig.Must(sub.look(ctx, load.Address))
		s = h.ask(ctx, sub, load)
		err := sub.look(ctx, load.Address)
		if err == nil && sub.after != nil {
			err = sub.after(ctx)
		}
		if err != nil {
			rig.Must(fmt.Errorf("afterwards: %w", err))
		}
	})
	return s, err
}

// errUnanswered is what comes of a server that got no processor for as long as it was asked.
var errUnanswered = errors.New("nothing was answered")

// send sends requests, and returns a sample without what the server has used, and how many answers there were.
func send(ctx context.Context, load rate.Config, code int) (sample, int64, error) {
	r, err := rate.Run(ctx, load)
	if err != nil {
		return nil, 0, err
	}
	if r.Answered == 0 {
		return nil, 0, fmt.Errorf("%w: %s", errUnanswered, r.LastError)
	}
	s := sample{
		perSecond: r.Rate, p50: r.Latency.P50 / 1e6, p99: r.Latency.P99 / 1e6,
		bad: float64(r.Answered - r.Status[code] + r.Failed()), generator: 100 * r.CPUShare,
	}
	if load.Rate > 0 {
		s[p999], s[late] = r.Latency.P999/1e6, r.Late.P99/1e6
	}
	return s, r.Answered, nil
}

// ask has a server asked until all is warm, and then for as long as counts.
func (h *harness) ask(ctx context.Context, sub *subject, load rate.Config) sample {
	load.Lasts = min(warm, h.lasts)
	_, _, err := send(ctx, load, sub.wants())
	rig.Must(err)
	collected, before, begun := sub.collecting(), sub.usage(), time.Now()
	load.Lasts = h.lasts
	s, answered, err := send(ctx, load, sub.wants())
	rig.Must(err)
	passed, used := time.Since(begun), sub.usage().Sub(before)
	s[cpu] = used.CPU.Seconds() / float64(answered)
	if len(sub.parts) == 1 { // else they wait for each other
		s[waited] = 100 * used.Waited.Seconds() / passed.Seconds()
	}
	if len(sub.nodes) > 0 && used.CPU > 0 {
		s[garbage] = 100 * (sub.collecting() - collected).Seconds() / used.CPU.Seconds()
	}
	return s
}

// due is how many requests a second are due to an entry, by what was measured in this round; 0: as many as can be.
func (h *harness) due(e entry) (float64, error) {
	if e.halfOf == "" {
		return 0, nil
	}
	all := h.samples[e.halfOf]
	if len(all) == 0 {
		return 0, fmt.Errorf("it goes by the rate of %q, which was not measured", e.halfOf)
	}
	return all[len(all)-1][perSecond] / 2, nil
}

func (s *subject) usage() (total rig.Usage) {
	for _, p := range s.parts {
		total = total.Add(rig.Got(p.Usage()))
	}
	return total
}

// collecting is what its nodes have spent so far on collecting garbage.
func (s *subject) collecting() (total time.Duration) {
	for _, p := range s.nodes {
		total += collecting(p.Log())
	}
	return total
}

// look sends one of the requests, and returns what is wrong with its answer.
func (s *subject) look(ctx context.Context, address string) error {
	resp, err := ask(ctx, address, s.heads[0])
	if err != nil {
		return err
	}
	if resp.StatusCode != s.wants() {
		return fmt.Errorf("the answer is %s, and %d is wanted", resp.Status, s.wants())
	}
	if s.probe != nil {
		return s.probe(resp)
	}
	return nil
}

// askTime is how long one answer may take.
const askTime = 10 * time.Second

// ask sends a request as it is, on a connection of its own, and reads all of the answer: its body need not be closed.
func ask(ctx context.Context, address string, head []byte) (*http.Response, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(askTime))
	if _, err := conn.Write(head); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, err
}
