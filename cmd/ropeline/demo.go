package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/bench/load"
	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/settings"
)

// demoOptions is what the flags of the command say.
type demoOptions struct {
	crowd      int
	duration   time.Duration // 0: until interrupted
	listen     string
	mustListen bool // whether the user asked for that address
	room       demoRoom
}

func newDemoCommand() *cobra.Command {
	o := demoOptions{
		crowd:  60,
		listen: "127.0.0.1:8080",
		room:   demoRoom{active: 20, perMinute: 120, session: 15 * time.Second, refresh: 2 * time.Second, method: room.FIFO},
	}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it work, on this machine",
		Long: `Starts a small shop that holds 20 visitors, three nodes in two sites in front of
it, and a crowd of simulated visitors, all on this machine. Open the address that
it prints: you queue among them, and get in. Try to kill a node with kill -9.

Ctrl-C ends everything, and leaves nothing behind.`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.mustListen = cmd.Flags().Changed("listen")
			return runDemo(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.Var(settings.Int(0, 10_000).At(&o.crowd), "crowd", "how many simulated visitors stand at the door at first; 0: none come at all")
	f.Var(settings.Duration(0, 24*time.Hour, 1).At(&o.duration), "for", "end by itself after this time, with a summary (default: at Ctrl-C)")
	f.Lookup("for").DefValue = ""
	f.Var(hostPort.At(&o.listen), "listen", "where the first node serves visitors; if that is taken and not asked for, elsewhere")
	f.Var(settings.Word(room.FIFO, room.Random, room.Passthrough, room.Reject).At(&o.room.method), "queueing-method", "who is let in next: fifo, random, passthrough (everybody) or reject (nobody)")
	f.SortFlags = false
	return cmd
}

// runDemo runs the demonstration until ctx or its time ends.
func runDemo(ctx context.Context, o demoOptions, out io.Writer) (err error) {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own program: %w", err)
	}
	dir, err := os.MkdirTemp("", "ropeline-demo-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nThe logs of the nodes are kept in %s", err, dir)
			return
		}
		err = os.RemoveAll(dir)
	}()
	origin, closeShop, err := serveShop(o.room.session)
	if err != nil {
		return err
	}
	defer closeShop()
	mesh, err := planDemoMesh(dir, o.listen, o.mustListen)
	if err != nil {
		return err
	}
	defer mesh.stop()
	fmt.Fprintln(out, "Starting three nodes in two sites …")
	if err := mesh.start(ctx, exe, origin, o.room); err != nil {
		if ctx.Err() != nil {
			return nil // interrupted while starting
		}
		return err
	}
	introduce(out, mesh, o)
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	return newDemoShow(mesh, o, out).run(ctx)
}

// serveShop serves the shop on loopback until the function that it returns is
// called.
func serveShop(session time.Duration) (origin string, closeShop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serve the shop: %w", err)
	}
	server := &http.Server{
		Handler:           newShop(session, slog.New(slog.DiscardHandler)),
		ReadHeaderTimeout: 5 * time.Second,
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		// It ends when it is closed, and has no other way to fail: the nodes
		// would tell the visitors.
		_ = server.Serve(l)
	})
	return "http://" + l.Addr().String(), func() {
		_ = server.Close()
		wg.Wait()
	}, nil
}

// introduce says what was started, and where.
func introduce(out io.Writer, m *demoMesh, o demoOptions) {
	fmt.Fprintf(out, `
  The Small Shop holds %d visitors. Open it in a browser and queue up:

      http://%s/

`, o.room.active, m.nodes[0].http)
	const row = "  %-8s %-6s %-8s %-24s %s\n"
	fmt.Fprintf(out, row, "node", "site", "pid", "visitors", "status")
	for _, n := range m.nodes {
		fmt.Fprintf(out, row, n.name, n.site, strconv.Itoa(n.process.Pid()), "http://"+n.http+"/", n.admin+"/status")
	}
	crowd := "Nobody else is there."
	if o.crowd > 0 {
		crowd = fmt.Sprintf("%d simulated visitors are coming to the door, and more after them.", o.crowd)
	}
	end := "Ctrl-C ends everything."
	if o.duration > 0 {
		end = fmt.Sprintf("It ends after %s, or at Ctrl-C.", settings.Span(o.duration))
	}
	fmt.Fprintf(out, `
  %s
  %s

  Below: places taken, visitors who wait, visitors let in per minute;
  then for each site its active and waiting visitors.

`, crowd, end)
}

// demoShow is the demonstration once everything runs.
type demoShow struct {
	mesh  *demoMesh
	o     demoOptions
	out   io.Writer
	line  cli.StatusLine
	began time.Time
	told  time.Time // when the last line was printed, where there is no terminal

	mostActive, mostWaiting int64
}

func newDemoShow(mesh *demoMesh, o demoOptions, out io.Writer) *demoShow {
	return &demoShow{mesh: mesh, o: o, out: out, line: cli.NewStatusLine(out), began: time.Now()}
}

// run lets the crowd in and shows what happens until ctx ends, which is the
// proper end.
func (d *demoShow) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		report load.Report
		err    error
	}
	crowd := make(chan result, 1)
	if d.o.crowd > 0 {
		go func() {
			r, err := load.Run(ctx, demoCrowd(d.mesh, d.o), nil)
			crowd <- result{r, err}
			if err != nil {
				cancel() // without a crowd there is nothing to show
			}
		}()
	} else {
		crowd = nil
	}
	err := d.watch(ctx)
	cancel()
	d.line.Clear()
	var report *load.Report
	if crowd != nil {
		r := <-crowd
		report = &r.report
		err = errors.Join(err, r.err)
	}
	if err == nil {
		d.summarize(report)
	}
	return err
}

// demoCrowd is the crowd that keeps a room full: a rush at the door, then a
// tenth more than the room can take, of whom those leave who wait too long.
func demoCrowd(m *demoMesh, o demoOptions) load.Config {
	const (
		stay, think = 6 * time.Second, 1500 * time.Millisecond
		gap         = 150 * time.Millisecond // slow enough to see the room fill
	)
	c := load.Config{
		Accept:          load.AcceptHTML,
		SessionDuration: o.room.session,
		Crowd: load.Crowd{
			Burst: o.crowd, Spread: time.Duration(o.crowd) * gap, Stay: stay, Think: think, Patience: 3 * time.Minute, Paths: shopPaths(),
			// A place is taken for the stay and one session after it.
			Rate: 1.1 * float64(min(o.crowd, o.room.active)) / (stay + o.room.session).Seconds(),
		},
	}
	for _, n := range m.nodes {
		c.Targets = append(c.Targets, "http://"+n.http+"/")
	}
	return c
}

// watch shows the room until ctx ends. A node that somebody killed is part of
// the show; one that fails by itself ends it.
func (d *demoShow) watch(ctx context.Context) error {
	ticker := time.Tick(500 * time.Millisecond)
	for {
		select {
		case <-ctx.Done():
			return nil
		case n := <-d.mesh.ended:
			if ctx.Err() != nil {
				return nil
			}
			if !n.process.Killed() || d.mesh.alive() == 0 {
				return n.failure()
			}
			d.line.Clear()
			fmt.Fprintf(d.out, "  node %s was killed; its visitors go on at the other %d, its part of the places stays empty\n", n.name, d.mesh.alive())
		case <-ticker:
			if status, err := d.mesh.status(ctx); err == nil {
				d.show(status)
			}
		}
	}
}

// show tells how full the room is.
func (d *demoShow) show(s node.Status) {
	r := s.Rooms[0]
	d.mostActive, d.mostWaiting = max(d.mostActive, r.Active), max(d.mostWaiting, r.Waiting)
	words := fmt.Sprintf("%d/%d active, %d waiting, %d in/min",
		r.Active, r.TotalActiveUsers, r.Waiting, r.AdmittedPerMinute)
	for _, site := range r.Sites {
		words += fmt.Sprintf("  %s %d+%d", site.Site, site.Active, site.Waiting)
	}
	if d.line.Visible() {
		d.line.Show(int(r.Active), r.TotalActiveUsers, words)
		return
	}
	if now := time.Now(); now.Sub(d.told) >= 5*time.Second {
		d.told = now
		fmt.Fprintf(d.out, "  %4s  %s\n", now.Sub(d.began).Round(time.Second), words)
	}
}

// summarize tells what came of it. report is nil if there was no crowd.
func (d *demoShow) summarize(report *load.Report) {
	fmt.Fprintf(d.out, "\nAfter %s: at most %d of %d places were taken and %d visitors waited at one time,\nas the nodes counted.\n",
		time.Since(d.began).Round(time.Second), d.mostActive, d.o.room.active, d.mostWaiting)
	if report != nil {
		fmt.Fprintf(d.out, "Of %d simulated visitors %d had to wait and %d were let in,\n"+
			"%.1f %% of all pairs in the wrong order;\n"+
			"%d sessions were lost, and %d of %d requests failed.\n",
			report.Visitors, report.Waited, report.Admitted, 100*report.OrderError,
			report.SessionsLost, report.Errors, report.Requests)
	}
}
