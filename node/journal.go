package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/node/durable"
)

// renewInterval is how often a node whose store has failed tries to write a new one.
const renewInterval = time.Second

// keeper is whose writes a journal keeps: a Core.
type keeper interface {
	Writes() []durable.Write
	Written(err error, now time.Time) []Message
	Stored() []durable.Write
	StoreBack(now time.Time)
}

var _ keeper = (*Core)(nil)

// journal takes the writes of the loop to the disk and brings back what became of
// them, so that the loop waits for no disk. One thing is under way at a time: a
// batch, or, after one has failed, a new store with all that is confirmed. A batch
// that failed is never tried again.
//
// run has one goroutine; all other methods belong to the loop.
type journal struct {
	disk  durable.Disk
	path  string
	extra durable.Write // is in every store, beside what the keeper knows of
	log   *slog.Logger

	jobs     chan job
	outcomes chan done

	busy   bool // a job is under way
	failed bool // a batch failed, and there is no new store yet
	retry  time.Time
	said   string // why there is none, as it was logged last

	failures atomic.Uint64 // batches that failed; any goroutine may read it

	store   durable.Store // run's
	objects *durable.Objects
}

// job is a batch to be written, or the content of a new store.
type job struct {
	batch []durable.Write
	renew bool
}

// done is what became of a job.
type done struct {
	renew bool
	err   error
}

func newJournal(disk durable.Disk, path string, store durable.Store, extra durable.Write, log *slog.Logger) (*journal, error) {
	// The runtime logs panics of calls only, and the journal's do not panic.
	objects, err := durable.New(durable.Config{Store: store, Logger: log})
	if err != nil {
		return nil, err
	}
	return &journal{disk: disk, path: path, extra: extra, log: log, store: store, objects: objects,
		jobs: make(chan job, 1), outcomes: make(chan done, 1)}, nil
}

// step hands over what there is to write. It is called whenever the keeper may have
// something new.
func (j *journal) step(k keeper, now time.Time) {
	if j.busy || j.failed && now.Before(j.retry) {
		return
	}
	if j.failed {
		j.busy = true
		j.jobs <- job{batch: append(k.Stored(), j.extra), renew: true}
		return
	}
	if batch := k.Writes(); len(batch) > 0 {
		j.busy = true
		j.jobs <- job{batch: batch}
	}
}

// settle tells the keeper what became of the job that was under way, and goes on
// with the next one.
func (j *journal) settle(k keeper, o done, now time.Time) []Message {
	j.busy = false
	var out []Message
	switch {
	case !o.renew:
		out = k.Written(o.err, now)
		if o.err != nil {
			j.fail(o.err, now)
		}
	case o.err != nil:
		j.retry = now.Add(renewInterval)
		if text := o.err.Error(); text != j.said {
			j.said = text
			j.log.Warn("no new store can be written yet; tried again every second", "file", j.path, "error", o.err)
		}
	default:
		j.failed, j.said = false, ""
		k.StoreBack(now)
		j.log.Info("a new store is written; this node gives tickets again", "file", j.path)
	}
	j.step(k, now)
	return out
}

func (j *journal) fail(err error, now time.Time) {
	j.failed, j.retry = true, now
	j.failures.Add(1)
	j.log.Error("the disk did not take what this node has to keep: it gives no tickets until a new store is written, which is tried every second; "+
		"visitors who are in go on. Make room on the disk, or replace it; what failed is not written again",
		"file", j.path, "error", err)
}

// finish writes what the keeper still has, for as long as that succeeds, and ends
// run. No step may follow.
func (j *journal) finish(k keeper, now time.Time) {
	for j.step(k, now); j.busy && !j.failed; {
		j.settle(k, <-j.outcomes, now)
	}
	close(j.jobs)
}

// run does the jobs until finish, then closes the store.
func (j *journal) run() error {
	ctx, stop := context.WithCancel(context.Background())
	var objects sync.WaitGroup
	objects.Go(func() { j.objects.Run(ctx) })
	for job := range j.jobs {
		o := done{renew: job.renew}
		if job.renew {
			o.err = j.renew(job.batch)
		} else {
			o.err = j.write(ctx, job.batch)
		}
		j.outcomes <- o
	}
	stop()
	objects.Wait()
	return j.store.Close()
}

// write makes a batch durable: each object's part is one call, all of them at once,
// so that they share a commit.
func (j *journal) write(ctx context.Context, batch []durable.Write) error {
	parts := make(map[string][]durable.Write)
	for _, w := range batch {
		parts[w.Object] = append(parts[w.Object], w)
	}
	errs := make(chan error, len(parts))
	for object, part := range parts {
		go func() {
			_, err := durable.Do(ctx, j.objects, object, func(c *durable.Call) (struct{}, error) {
				return struct{}{}, c.Transaction(func() error { return putAll(c, part) })
			})
			errs <- err
		}()
	}
	var all []error
	for range parts {
		if err := <-errs; err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

func putAll(c *durable.Call, part []durable.Write) error {
	for _, w := range part {
		var err error
		if w.Value == nil {
			err = c.Delete(w.Key)
		} else {
			err = c.Put(w.Key, w.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// renew goes on with a new store of this content.
func (j *journal) renew(all []durable.Write) error {
	fresh, err := j.disk.Create(j.path, all)
	if err != nil {
		return err
	}
	old := j.store
	j.store = fresh
	j.objects.Replace(fresh)
	if err := old.Close(); err != nil {
		j.log.Warn("the store that failed does not close", "file", j.path, "error", err)
	}
	return nil
}
