package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// snapshotEvery is how often the progress of a run is told.
const snapshotEvery = 200 * time.Millisecond

// ErrNoAnswer is what Run returns when no target answered anything.
var ErrNoAnswer = errors.New("load: no target answered")

// run is one run under way.
type run struct {
	cfg    Config
	start  time.Time
	client *client
	tally  *tally
	wg     sync.WaitGroup // visitors
}

// Run sends the visitors that cfg describes and returns when the last of them
// has left, when cfg.Duration is over, or when ctx is done, whichever comes
// first; each of them is a proper end and no error. What was under way then is
// broken off and not counted.
//
// It fails with an error that wraps ErrConfig when cfg cannot be meant, and with
// one that wraps ErrNoAnswer when not a single request was answered; the report
// is then good for its counts.
//
// progress, if not nil, is called a few times a second and once at the end,
// never concurrently. While it runs no other snapshot is taken, but visitors go
// on.
func Run(ctx context.Context, cfg Config, progress func(Snapshot)) (Report, error) {
	cfg, targets, err := cfg.withDefaults()
	if err != nil {
		return Report{}, err
	}
	if cfg.Log != nil && cfg.Crowd.Visitors > 0 {
		cfg.Log = cfg.Log.First(cfg.Crowd.Visitors)
	}
	start := time.Now()
	r := &run{cfg: cfg, start: start, client: newClient(cfg, targets, start), tally: newTally(cfg.SessionDuration)}
	defer r.client.close()
	if err := r.client.reach(ctx); err != nil && ctx.Err() == nil {
		return Report{Seed: cfg.Seed}, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	// The time of the run begins only now that somebody is there.
	r.start = time.Now()
	r.client.start = r.start

	cancel := context.CancelFunc(func() {})
	if cfg.Duration > 0 {
		ctx, cancel = context.WithTimeout(ctx, cfg.Duration)
	}
	defer cancel()
	// Whoever sits in a read notices the end when the connection is closed.
	defer context.AfterFunc(ctx, r.client.close)()

	told := r.tellProgress(progress)
	r.send(ctx)
	r.wg.Wait()
	elapsed := r.now()
	told()

	report := r.tally.end(elapsed)
	report.Seed = cfg.Seed
	if report.Requests > 0 && report.Requests == report.Errors && len(report.Status) == 0 {
		return report, fmt.Errorf("%w: %w", ErrNoAnswer, report.lastError)
	}
	return report, nil
}

// now returns the time since the start of the run.
func (r *run) now() time.Duration { return time.Since(r.start) }

// scale returns when something in the log is due.
func (r *run) scale(at time.Duration) time.Duration {
	return time.Duration(float64(at) / r.cfg.Speed)
}

// sleep waits until the given time of the run and reports false if ctx ends
// first.
func (r *run) sleep(ctx context.Context, until time.Duration) bool {
	d := until - r.now()
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// send starts every visitor at its time.
func (r *run) send(ctx context.Context) {
	if r.cfg.Log != nil {
		for i, c := range r.cfg.Log.Clients {
			due := r.scale(c.Requests[0].At)
			if !r.sleep(ctx, due) {
				return
			}
			v := r.welcome(i, due)
			r.wg.Go(func() { v.replay(ctx, c.Requests) })
		}
		return
	}
	times := newArrivals(r.cfg.Crowd, r.cfg.Seed)
	for i := 0; ; i++ {
		due, more := times.next()
		if !more || !r.sleep(ctx, due) {
			return
		}
		v := r.welcome(i, due)
		// A source of its own for each: what one draws must not depend on
		// when the others do.
		rng := rand.New(rand.NewPCG(r.cfg.Seed, uint64(i)+1))
		r.wg.Go(func() { v.browse(ctx, due, rng) })
	}
}

// welcome returns visitor i, who comes at due.
func (r *run) welcome(i int, due time.Duration) *visitor {
	return &visitor{run: r, life: r.tally.arrive(due), target: i % len(r.client.pools)}
}

// tellProgress calls progress until the function that it returns is called,
// which tells it a last time.
func (r *run) tellProgress(progress func(Snapshot)) (end func()) {
	if progress == nil {
		return func() {}
	}
	expected := r.cfg.Crowd.Visitors
	if r.cfg.Log != nil {
		expected = len(r.cfg.Log.Clients)
	}
	tell := func() {
		s := r.tally.snapshot(r.now())
		s.Expected = expected
		progress(s)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.Tick(snapshotEvery)
		for {
			select {
			case <-ticker:
				tell()
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
		tell()
	}
}
