package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
)

const (
	// renewInterval is how often a node whose store has failed tries to go on.
	renewInterval = time.Second

	// probeInterval is how often it is looked whether the disk still takes writes.
	probeInterval = 500 * time.Millisecond

	// refusedInterval is how often a node tries to go on whose store refuses what it
	// would keep: that is a mistake of ours, and no new store will take it either.
	refusedInterval = time.Minute

	// hangsAfter is how long a job may be under way. A disk that hangs says nothing, as one does whose
	// file system is frozen for a snapshot; a slow one takes seconds for a commit, and a job is up to a few.
	hangsAfter = 15 * time.Second

	// storeKeys bounds the keys of an object. Facts are one, and bounded themselves.
	storeKeys = 2 * crdt.MaxParts

	// maxAtWork bounds the objects of a batch that are at work at once.
	maxAtWork = 4096
)

// keeper is whose writes a journal keeps: a Core.
type keeper interface {
	Writes() []durable.Write
	Written(err error, now time.Time) []Message
	Stored() []durable.Write
	StoreBack(now time.Time)
	Given() uint64
}

var _ keeper = (*Core)(nil)

// journal takes the writes of the loop to the disk and brings back what became of
// them, so that the loop waits for no disk. One thing is under way at a time: a
// batch, or, after one has failed, a new store with all that is confirmed. A batch
// that failed is never tried again.
//
// Tickets rest on what was written before, so that a node may give some for a while
// without a write, and one that changes what is there takes no room. That a disk is
// full or broken must show nevertheless: it is probed twice a second, for its room,
// and, while tickets are given, by a write if there was none. So must a store that was removed or
// renamed, into which writes go as before, and which the next start would not find.
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
	began  time.Time
	late   bool // it has been for too long, and counts as failed
	failed bool // a batch failed, or the disk is full, and it has not been mended yet
	sound  bool // no commit of the store has failed: once there is room it can go on
	retry  time.Time
	said   string // why it is not mended, as it was logged last

	probed time.Time
	wrote  bool   // a batch was confirmed since
	given  uint64 // tickets, as of then

	failures atomic.Uint64 // how often that happened; any goroutine may read it

	store   durable.Store // run's
	objects *durable.Objects
}

// job is a batch to be written, a probe, with or without one, or the content of a new
// store; nil where the old one will do.
type job struct {
	kind  jobKind
	batch []durable.Write
}

type jobKind uint8

const (
	writing jobKind = iota
	probing
	renewing
)

// done is what became of a job.
type done struct {
	kind jobKind
	err  error
}

func newJournal(disk durable.Disk, path string, store durable.Store, extra durable.Write, log *slog.Logger) (*journal, error) {
	// The runtime logs panics of calls only, and the journal's do not panic.
	objects, err := durable.New(durable.Config{Store: store, Logger: log, MaxKeys: storeKeys})
	if err != nil {
		return nil, err
	}
	return &journal{
		disk: disk, path: path, extra: extra, log: log, store: store, objects: objects, sound: true,
		jobs: make(chan job, 1), outcomes: make(chan done, 1),
	}, nil
}

// step hands over what there is to write. It is called whenever the keeper may have
// something new.
func (j *journal) step(k keeper, now time.Time) {
	if j.busy || j.failed && now.Before(j.retry) {
		return
	}
	switch {
	case j.failed:
		var all []durable.Write
		if !j.sound {
			all = append(k.Stored(), j.extra)
		}
		j.start(job{renewing, all}, now)
	case now.Sub(j.probed) >= probeInterval || now.Before(j.probed):
		probe, given := job{kind: probing}, k.Given()
		if given != j.given && !j.wrote {
			probe.batch = []durable.Write{j.extra}
		}
		j.probed, j.given, j.wrote = now, given, false
		j.start(probe, now)
	default:
		if batch := k.Writes(); len(batch) > 0 {
			j.start(job{writing, batch}, now)
		}
	}
}

func (j *journal) start(next job, now time.Time) {
	j.busy, j.began = true, now
	j.jobs <- next
}

// overdue has a job that has been under way for too long count as failed. Nothing rests on what it writes in the
// end: once it is over, a new store takes the place of the one that hung.
func (j *journal) overdue(k keeper, now time.Time) []Message {
	if !j.busy || j.late || now.Sub(j.began) < hangsAfter {
		return nil
	}
	j.late = true
	if j.failed {
		return nil
	}
	err := fmt.Errorf("the disk has not answered for %v", hangsAfter)
	out := k.Written(err, now)
	j.fail(err, now)
	return out
}

// settle tells the keeper what became of the job that was under way, and goes on
// with the next one.
func (j *journal) settle(k keeper, o done, now time.Time) []Message {
	late := j.late && o.kind != renewing
	j.busy, j.late = false, false
	var out []Message
	switch {
	case late: // the keeper was told that it has failed
	case o.kind == writing && o.err == nil:
		j.wrote = true
		out = k.Written(nil, now)
	case o.kind == probing && o.err == nil:
	case o.kind != renewing:
		out = k.Written(o.err, now)
		j.fail(o.err, now)
	case o.err != nil:
		j.retry = now.Add(renewInterval)
		j.sound = j.sound && errors.Is(o.err, durable.ErrFull)
		if text := o.err.Error(); text != j.said {
			j.said = text
			j.log.Warn("no tickets from this node yet; the disk is tried again every second", "file", j.path, "error", o.err)
		}
	default:
		j.failed, j.sound, j.said = false, true, ""
		k.StoreBack(now)
		j.log.Info("the disk is well; this node gives tickets again", "file", j.path)
	}
	j.step(k, now)
	return out
}

func (j *journal) fail(err error, now time.Time) {
	j.failed, j.sound, j.retry, j.said = true, errors.Is(err, durable.ErrFull), now, err.Error()
	j.failures.Add(1)
	if errors.Is(err, durable.ErrLimit) {
		j.retry = now.Add(refusedInterval)
		j.log.Error("the store refuses what this node has to keep, which is more than it is made for: the disk is not the reason, and more room will not help; "+
			"this node gives no tickets, and tries again every minute; visitors who are in go on",
			"file", j.path, "error", err)
		return
	}
	j.log.Error("the disk does not take what this node has to keep: it gives no tickets until it does, which is tried every second; "+
		"visitors who are in go on. Make room on the disk, or replace it; a write that failed is not tried again",
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
		j.outcomes <- done{job.kind, j.do(ctx, job)}
	}
	stop()
	objects.Wait()
	return j.store.Close()
}

func (j *journal) do(ctx context.Context, next job) error {
	goesOn := next.kind == renewing && next.batch == nil // the disk was full, no more
	if next.kind == probing {
		if err := j.store.Check(); err != nil {
			return err
		}
	}
	if next.kind != writing {
		if err := durable.Room(j.disk, j.path, goesOn); err != nil {
			return err
		}
	}
	switch {
	case goesOn:
		return j.write(ctx, []durable.Write{j.extra})
	case next.kind == renewing:
		return j.renew(next.batch)
	}
	return j.write(ctx, next.batch)
}

// write makes a batch durable: each object's part is one call, and thousands of them at
// once, so that they share a commit.
func (j *journal) write(ctx context.Context, batch []durable.Write) error {
	parts := make(map[string][]durable.Write)
	for _, w := range batch {
		parts[w.Object] = append(parts[w.Object], w)
	}
	errs := make(chan error, len(parts))
	atWork := make(chan struct{}, maxAtWork)
	for object, part := range parts {
		atWork <- struct{}{}
		go func() {
			defer func() { <-atWork }()
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
