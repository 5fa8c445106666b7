package node

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/durable/faultstore"
)

// ledger is a keeper that counts up: what it wants written, what it takes for
// confirmed.
type ledger struct {
	next, confirmed, flying int
	failed                  error
	tickets                 int // given, each after its write was confirmed
	failures, backs         int
}

const ledgerObject = rightsObject + "r"

func ledgerWrite(n int) durable.Write {
	return durable.Write{Object: ledgerObject, Key: "n", Value: fmt.Append(nil, n)}
}

func (l *ledger) Writes() []durable.Write {
	if l.flying > 0 || l.failed != nil || l.next == l.confirmed {
		return nil
	}
	l.flying = l.next
	return []durable.Write{ledgerWrite(l.flying), {Object: factsObject, Key: "f", Value: fmt.Append(nil, l.flying)}}
}

func (l *ledger) Written(err error, _ time.Time) []Message {
	if err != nil {
		l.failures++
		l.failed, l.flying = err, 0
		return nil
	}
	l.tickets += l.flying - l.confirmed
	l.confirmed, l.flying = l.flying, 0
	return []Message{{Kind: kindGrant, Slot: uint64(l.confirmed)}}
}

func (l *ledger) Stored() []durable.Write {
	if l.confirmed == 0 {
		return nil
	}
	return []durable.Write{ledgerWrite(l.confirmed)}
}

func (l *ledger) Given() uint64 { return uint64(l.tickets) }

func (l *ledger) StoreBack(time.Time) { l.backs++; l.failed, l.next = nil, l.confirmed }

// desk runs a journal as the loop of a node does.
type desk struct {
	*ledger
	t    *testing.T
	j    *journal
	disk *faultstore.Disk
	logs *syncBuffer
	sent []Message
	wg   sync.WaitGroup
	err  error
}

// syncBuffer is a buffer that goroutines may write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.b.String(), text)
}

func newDesk(t *testing.T, under durable.Disk) *desk {
	t.Helper()
	d := &desk{ledger: &ledger{}, t: t, disk: faultstore.New(under, 1), logs: &syncBuffer{}}
	store, err := d.disk.Open("s")
	if err != nil {
		t.Fatal(err)
	}
	mark := durable.Write{Object: startObject, Key: startKey, Value: []byte("mark")}
	if d.j, err = newJournal(d.disk, "s", store, mark, slog.New(slog.NewTextHandler(d.logs, nil))); err != nil {
		t.Fatal(err)
	}
	d.wg.Go(func() { d.err = d.j.run() })
	return d
}

// run lets time pass in ticks, and the keeper want a write in each.
func (d *desk) run(span time.Duration) {
	ticks := time.NewTicker(tickInterval)
	defer ticks.Stop()
	for end := time.Now().Add(span); time.Now().Before(end); {
		select {
		case o := <-d.j.outcomes:
			d.sent = append(d.sent, d.j.settle(d, o, time.Now())...)
		case <-ticks.C:
			if d.failed == nil {
				d.next++
			}
			d.sent = append(d.sent, d.j.overdue(d, time.Now())...)
			d.j.step(d, time.Now())
		}
	}
}

func (d *desk) stop() {
	d.j.finish(d, time.Now())
	d.wg.Wait()
	if d.err != nil {
		d.t.Errorf("the journal ended with %v", d.err)
	}
}

// onDisk is what a start would find.
func (d *desk) onDisk() []string {
	s, err := d.disk.Open("s")
	if err != nil {
		d.t.Fatal(err)
	}
	var all []string
	if err := s.Load(func(w durable.Write) bool {
		all = append(all, fmt.Sprintf("%s/%s=%s", w.Object, w.Key, w.Value))
		return true
	}); err != nil {
		d.t.Fatal(err)
	}
	return all
}

func TestJournalWritesAndTellsTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, faultstore.NewMemory(1))
		d.run(time.Second)
		if d.confirmed < 10 || len(d.sent) != d.confirmed {
			t.Errorf("%d confirmed and %d messages after a second", d.confirmed, len(d.sent))
		}
		d.next += 5
		d.stop()
		if d.confirmed != d.next {
			t.Errorf("%d confirmed at the end, %d were wanted", d.confirmed, d.next)
		}
		want := []string{fmt.Sprintf("facts/f=%d", d.confirmed), fmt.Sprintf("rights/r/n=%d", d.confirmed)}
		if got := d.onDisk(); !slices.Equal(got, want) {
			t.Errorf("on disk: %q, want %q", got, want)
		}
	})
}

// TestJournalWhenADiskIsFull fills the disk for ten seconds.
func TestJournalWhenADiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, faultstore.NewMemory(1))
		d.run(time.Second)
		d.disk.Set(faultstore.Faults{Room: 1})
		d.run(10 * time.Second)
		if d.failures != 1 || d.backs != 0 || d.j.failures.Load() != 1 {
			t.Errorf("the keeper heard of %d failures and %d new stores, status counts %d; want 1, 0, 1", d.failures, d.backs, d.j.failures.Load())
		}
		if n := d.logs.count("level=ERROR"); n != 1 || d.logs.count(syscall.ENOSPC.Error()) == 0 {
			t.Errorf("%d errors logged, want one that names the reason", n)
		}
		before, commits := d.tickets, d.disk.Commits()
		d.disk.Set(faultstore.Faults{})
		d.run(1100 * time.Millisecond)
		if d.backs != 1 || d.tickets == before {
			t.Errorf("a second after there was room: %d new stores, %d tickets more", d.backs, d.tickets-before)
		}
		if d.disk.Commits() == commits || d.logs.count("level=INFO") != 1 {
			t.Errorf("%d commits more, %d lines of good news", d.disk.Commits()-commits, d.logs.count("level=INFO"))
		}
		d.stop()
		// The part that the keeper does not hold as stored was not taken over, the
		// mark was.
		got := d.onDisk()
		if len(got) != 3 || got[2] != "start/node=mark" {
			t.Errorf("on disk: %q", got)
		}
	})
}

// TestJournalWritesNothingAfterAFailedCommit fails each of the first commits, with
// every outcome. One commit is seen by the disk for each batch: nothing is repeated.
func TestJournalWritesNothingAfterAFailedCommit(t *testing.T) {
	for _, outcome := range []faultstore.Outcome{faultstore.Lost, faultstore.Kept, faultstore.Maybe} {
		for at := 1; at <= 12; at++ {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, faultstore.NewMemory(1))
				d.disk.Set(faultstore.Faults{FailAt: at, Outcome: outcome, Delay: 10 * time.Millisecond})
				d.run(3 * time.Second)
				if d.failures != 1 || d.backs != 1 || d.disk.Created() != 1 {
					t.Errorf("commit %d: %d failures, %d new stores heard of, %d made; want 1 each", at, d.failures, d.backs, d.disk.Created())
				}
				d.stop()
				if want := fmt.Sprintf("rights/r/n=%d", d.confirmed); !slices.Contains(d.onDisk(), want) {
					t.Errorf("commit %d: on disk %q, want %q", at, d.onDisk(), want)
				}
			})
		}
	}
}

// TestJournalDoesNotHoldUpTheLoop has each write take five seconds.
func TestJournalDoesNotHoldUpTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, faultstore.NewMemory(1))
		d.disk.Set(faultstore.Faults{Delay: 5 * time.Second})
		start := time.Now()
		for range 20 {
			d.next++
			d.j.step(d, time.Now())
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("the loop waited %v for the disk", took)
		}
		if d.tickets > 0 {
			t.Error("a ticket left before its write was confirmed")
		}
		// The parts of a batch may go in two commits.
		d.run(11 * time.Second)
		if d.tickets == 0 {
			t.Error("no ticket although a write is confirmed")
		}
		d.stop()
	})
}

// TestJournalNoticesADiskThatHangs has one commit take a minute, which then succeeds: meanwhile the store counts as
// failed, and after it a new one takes its place, without what was written so late.
func TestJournalNoticesADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, faultstore.NewMemory(1))
		d.run(time.Second)
		given := d.tickets
		if given == 0 {
			t.Fatal("no ticket although nothing is wrong")
		}
		d.disk.Set(faultstore.Faults{Delay: time.Minute})
		d.run(hangsAfter - time.Second)
		if d.failures > 0 || d.ledger.failed != nil {
			t.Errorf("failed after less than %v", hangsAfter)
		}
		d.run(2 * time.Second)
		if d.failures != 1 || d.j.failures.Load() != 1 || d.logs.count("has not answered for") != 1 {
			t.Errorf("the keeper was told of %d failures, %d are counted, and %d logged; want one", d.failures, d.j.failures.Load(), d.logs.count("has not answered for"))
		}
		late := d.next
		d.disk.Set(faultstore.Faults{})
		d.run(2 * time.Minute)
		if d.failures != 1 || d.backs != 1 || d.tickets <= given {
			t.Errorf("%d failures, %d times well again, %d tickets after %d; want 1, 1 and more", d.failures, d.backs, d.tickets, given)
		}
		if d.confirmed < late {
			t.Errorf("%d is confirmed, want %d and more", d.confirmed, late)
		}
		d.stop()
		if want := fmt.Sprintf("%s/n=%d", ledgerObject, d.confirmed); !slices.Contains(d.onDisk(), want) {
			t.Errorf("on disk is %q, want %s in it", d.onDisk(), want)
		}
	})
}
