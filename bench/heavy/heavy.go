//go:build linux

// Package heavy loads a real node with what wears proxies out: bodies of a GiB,
// thousands of WebSockets that say nothing, and clients that send a byte now and
// then.
//
// The node is a process of its own, so that its memory is; the origin and the clients
// together need as many open files as it does.
package heavy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// plan says how much is done.
type plan struct {
	binary   string        // the program of ropeline
	body     int64         // bytes of one body
	sockets  int           // WebSockets, if there are files for as many
	hold     time.Duration // how long they say nothing
	slow     int           // clients that send a byte now and then
	visitors int           // others, meanwhile
	alone    time.Duration // and before, for comparison
}

// Entry is the measurement.
func Entry() measurement.Entry {
	return measurement.Entry{
		Name: "heavy", Page: "measurements.md",
		Question: "Does a node hold what wears proxies out: large bodies, idle WebSockets, slow clients?",
		Method: "A real node with the settings that it has by itself, and a site behind it: bodies both ways, with a length and in chunks, WebSockets that say nothing, " +
			"and clients that send a byte now and then while others ask.",
		Units: []measurement.Unit{
			{Name: "broken", Meaning: "how much of what has to hold did not", Better: "lower", Exact: true},
			measurement.InAll,
			{Name: "B/s", Meaning: "bytes of a body a second", Better: "higher"},
			{Name: "grown-B", Meaning: fmt.Sprintf("by how much the node's resident memory grew meanwhile: less than %d MiB has to do", growthMax>>20), Better: "lower"},
			{Name: "B/socket", Meaning: "resident memory of the node for each WebSocket", Better: "lower"},
			{Name: "cpu-sec/s", Meaning: "processor time of the node a second while all of these say nothing", Better: "lower"},
			{Name: "sockets", Meaning: "how many there were"},
			{Name: "untried", Meaning: "how many more were wanted: the limit of open files does not allow them", Better: "lower"},
			{Name: "requests", Meaning: "of visitors, who ask ten times a second"},
			{Name: "failed", Meaning: "of these, without a good answer", Better: "lower", Exact: true},
			{Name: "p50-sec", Meaning: "latency of visitors, half are faster", Better: "lower"},
			{Name: "p99-sec", Meaning: "latency of visitors, 99 of 100 are faster", Better: "lower"},
			{Name: "clients", Meaning: "that send a byte now and then"},
			{Name: "first-sec", Meaning: "when the first of these was cut off"},
			{Name: "last-sec", Meaning: "when the last of them was", Better: "lower"},
		},
		Bounds: []measurement.Bound{measurement.NothingBroken},
		Needs:  []string{measurement.Ropeline},
		Quick:  []string{"body=67108864", "sockets=1000", "hold=2s", "slow=2", "alone=2s"},
		New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			p := plan{visitors: 20}
			o.Int64Var(&p.body, "body", 1<<30, "bytes of one body")
			o.IntVar(&p.sockets, "sockets", 10000, "how many WebSockets")
			o.DurationVar(&p.hold, "hold", time.Minute, "how long they say nothing")
			o.IntVar(&p.slow, "slow", 1000, "how many clients send a byte now and then")
			o.DurationVar(&p.alone, "alone", 10*time.Second, "how long they do before the slow ones come")
			return func(ctx context.Context, r *measurement.Run) error {
				p.binary = r.Binary
				return measure(ctx, p, r)
			}
		},
	}
}

// stack is a node in front of an origin.
type stack struct {
	plan
	run    *measurement.Run
	node   *rig.Process
	addr   string // where visitors connect
	broken int
}

// row adds a row of which something has to hold.
func (s *stack) row(name string, holds bool, values measurement.Values) {
	values["broken"] = 0
	if !holds {
		values["broken"] = 1
		s.broken++
	}
	s.run.Add(name, values)
	s.run.Tell("%s: %v", name, values)
}

// measure runs everything, on one node after the other.
func measure(ctx context.Context, p plan, r *measurement.Run) error {
	s := &stack{plan: p, run: r}
	for _, part := range []func(*stack, context.Context){(*stack).measureBodies, (*stack).measureSockets, (*stack).measureSlow} {
		if err := rig.Try(func() { s.with(ctx, part) }); err != nil {
			return err
		}
	}
	_ = r.Broken(s.broken) // its bound says so
	return nil
}

// with does a part with a new node and a new origin.
func (s *stack) with(ctx context.Context, part func(*stack, context.Context)) {
	dir := rig.Got(os.MkdirTemp("", "ropeline-heavy-"))
	defer os.RemoveAll(dir)
	site, stop, err := rig.Serve(&http.Server{Handler: origin()}, "")
	rig.Must(err)
	defer stop()
	ports := rig.Got(rig.FreePorts(2))
	s.addr = ports[0]
	s.node = rig.Got(rig.Start(ctx, rig.Command{Name: s.binary, Args: []string{
		"run", "--origin", "http://" + site, "--listen", ports[0], "--admin", ports[1],
		"--data-dir", dir, "--total-active-users", "1000000", "--new-users-per-minute", "1000000",
	}}))
	defer func() { rig.Must(s.node.Stop()) }()
	rig.Must(s.node.Await(ctx, "http://"+ports[1]+"/readyz"))
	if err := rig.Try(func() { part(s, ctx) }); err != nil {
		rig.Must(fmt.Errorf("%w\nThe node said:\n%s", err, s.node.Log()))
	}
}

// growthMax is by how much a body may make the node grow.
const growthMax = 64 << 20

// measureBodies sends large bodies both ways, with a length and in chunks.
func (s *stack) measureBodies(ctx context.Context) {
	for _, kind := range []struct {
		name string
		do   func(n int64)
	}{
		{"up, with a length", func(n int64) { s.upload(ctx, n, n) }},
		{"up, in chunks", func(n int64) { s.upload(ctx, n, -1) }},
		{"down, with a length", func(n int64) { s.download(ctx, n, "") }},
		{"down, in chunks", func(n int64) { s.download(ctx, n, "yes") }},
	} {
		for range 20 { // what any request costs is not the body's
			kind.do(1 << 10)
		}
		before := rig.Got(s.node.Memory())
		rig.Must(s.node.ForgetPeak())
		start := time.Now()
		kind.do(s.body)
		took := time.Since(start)
		grew := max(0, rig.Got(s.node.Memory()).Peak-before.Total)
		s.row(measurement.Row("body", kind.name), grew < growthMax, measurement.Values{"B/s": float64(s.body) / took.Seconds(), "grown-B": float64(grew)})
	}
}

// upload sends n bytes and says that they are length, or -1.
func (s *stack) upload(ctx context.Context, n, length int64) {
	req := rig.Got(http.NewRequestWithContext(ctx, "POST", "http://"+s.addr+"/up", io.LimitReader(zeros{}, n)))
	req.ContentLength = length
	resp := rig.Got(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	got := string(rig.Got(io.ReadAll(io.LimitReader(resp.Body, 1<<20))))
	if want := fmt.Sprint(n, " ", nil); resp.StatusCode != http.StatusOK || got != want {
		rig.Must(fmt.Errorf("status %d, and the origin got %.200q, want %q", resp.StatusCode, got, want))
	}
}

func (s *stack) download(ctx context.Context, n int64, chunks string) {
	req := rig.Got(http.NewRequestWithContext(ctx, "GET", "http://"+s.addr+"/down?bytes="+strconv.FormatInt(n, 10)+"&chunks="+chunks, nil))
	resp := rig.Got(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	if got, err := io.Copy(io.Discard, resp.Body); err != nil || got != n || resp.StatusCode != http.StatusOK || (resp.ContentLength < 0) != (chunks != "") {
		rig.Must(fmt.Errorf("got status %d and %d bytes of %d, announced as %d: %v", resp.StatusCode, got, n, resp.ContentLength, err))
	}
}
