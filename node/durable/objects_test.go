package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/durable/faultstore"
)

// fsync is how long a commit takes on the disk of these tests, in virtual time.
const fsync = 10 * time.Millisecond

// bench has objects on a disk with faults.
type bench struct {
	t    *testing.T
	disk *faultstore.Disk
	*durable.Objects
}

func newBench(t *testing.T, cfg durable.Config) *bench {
	t.Helper()
	b := &bench{t: t, disk: faultstore.New(faultstore.NewMemory(1), 1)}
	b.disk.Set(faultstore.Faults{Delay: fsync})
	cfg.Store = openStore(t, b.disk, "s")
	b.Objects, _ = start(t, cfg)
	return b
}

// do runs a call that gives no result.
func (b *bench) do(object string, f func(*durable.Call) error) error {
	_, err := durable.Do(b.t.Context(), b.Objects, object, func(c *durable.Call) (struct{}, error) { return struct{}{}, f(c) })
	return err
}

// must is do for calls that succeed.
func (b *bench) must(object string, f func(*durable.Call) error) {
	b.t.Helper()
	if err := b.do(object, f); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) want(object, key, want string) {
	b.t.Helper()
	b.must(object, func(c *durable.Call) error {
		v, err := c.Get(key)
		if string(v) != want {
			b.t.Errorf("%s/%s is %q, want %q", object, key, v, want)
		}
		return err
	})
}

func put(key, value string, o ...durable.Options) func(*durable.Call) error {
	return func(c *durable.Call) error { return c.Put(key, []byte(value), o...) }
}

// inBubble runs f in virtual time.
func inBubble(t *testing.T, cfg durable.Config, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newBench(t, cfg)) })
}

func TestOutputGate(t *testing.T) {
	inBubble(t, durable.Config{}, func(b *bench) {
		start := time.Now()
		b.must("o", put("k", "1"))
		if took := time.Since(start); took != fsync {
			t.Errorf("a reply came after %v, its write takes %v", took, fsync)
		}
		start = time.Now()
		b.want("o", "k", "1")
		if took := time.Since(start); took != 0 {
			t.Errorf("a read of what is confirmed took %v", took)
		}
		go b.do("o", put("k", "2"))
		synctest.Wait()
		start = time.Now()
		b.want("o", "k", "2") // a read depends on what others have written
		if took := time.Since(start); took != fsync {
			t.Errorf("a read of what is not confirmed was answered after %v, not %v", took, fsync)
		}
		start = time.Now()
		b.must("o", put("k", "3", durable.AllowUnconfirmed))
		if took := time.Since(start); took != 0 {
			t.Errorf("an unconfirmed write held its reply for %v", took)
		}
		time.Sleep(2 * fsync)
		b.want("o", "k", "3")
	})
}

func TestWritesOfManyShareACommit(t *testing.T) {
	inBubble(t, durable.Config{}, func(b *bench) {
		start := time.Now()
		done := make(chan error)
		for i := range 100 {
			go func() { done <- b.do(fmt.Sprint("o", i%10), put("k", fmt.Sprint(i))) }()
		}
		for range 100 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n, took := b.disk.Commits(), time.Since(start); n > 2 || took > 2*fsync {
			t.Errorf("100 writes took %d commits and %v", n, took)
		}
	})
}

func TestMessagesWaitForWhatTheyRestOn(t *testing.T) {
	inBubble(t, durable.Config{}, func(b *bench) {
		var sent []string
		say := func(c *durable.Call, text string) {
			c.Send(func() { sent = append(sent, fmt.Sprint(text, " ", b.disk.Commits())) })
		}
		b.must("o", func(c *durable.Call) error {
			say(c, "first")
			c.Transaction(func() error {
				say(c, "undone")
				return errors.New("undo")
			})
			err := c.Put("k", []byte("1"))
			say(c, "second")
			return err
		})
		if got := strings.Join(sent, ", "); got != "first 1, second 1" {
			t.Errorf("sent %q", got)
		}
		sent = nil
		b.disk.Set(faultstore.Faults{FailAt: 2})
		err := b.do("o", func(c *durable.Call) error {
			say(c, "never")
			return c.Put("k", []byte("2"))
		})
		if !errors.Is(err, faultstore.ErrInjected) || len(sent) > 0 {
			t.Errorf("a write failed: %v, and %q was sent", err, sent)
		}
		b.want("o", "k", "1")
	})
}

func TestInputGate(t *testing.T) {
	inBubble(t, durable.Config{}, func(b *bench) {
		var steps []string
		note := func(text string) { steps = append(steps, text) }
		done := make(chan error, 3)
		go func() {
			done <- b.do("o", func(c *durable.Call) error {
				note("a")
				c.Put("k", []byte("1"))
				err := c.Await(func(context.Context) error { // others may run
					time.Sleep(time.Second)
					return nil
				})
				note("a again")
				return err
			})
		}()
		synctest.Wait()
		for _, name := range []string{"b", "c"} {
			go func() {
				done <- b.do("o", func(c *durable.Call) error {
					note(name)
					time.Sleep(800 * time.Millisecond) // not in Await: nobody else may run
					note(name)
					return nil
				})
			}()
			synctest.Wait()
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if got := strings.Join(steps, " "); got != "a b b c c a again" {
			t.Errorf("calls ran as %q", got)
		}
	})
}

func TestAwaitWaitsForTheGate(t *testing.T) {
	inBubble(t, durable.Config{}, func(b *bench) {
		start := time.Now()
		b.must("o", func(c *durable.Call) error {
			c.Put("k", []byte("1"))
			return c.Await(func(context.Context) error {
				if took := time.Since(start); took != fsync {
					t.Errorf("the outside was reached after %v, before the write was confirmed", took)
				}
				return nil
			})
		})
		b.disk.Set(faultstore.Faults{FailAt: 2})
		reached := false
		err := b.do("o", func(c *durable.Call) error {
			c.Put("k", []byte("2"))
			err := c.Await(func(context.Context) error { reached = true; return nil })
			if !errors.Is(err, durable.ErrRestarted) {
				t.Errorf("await returned %v, want ErrRestarted", err)
			}
			if err := c.Put("k", []byte("3")); !errors.Is(err, durable.ErrRestarted) {
				t.Errorf("a put of a call that was cut off returned %v", err)
			}
			return nil
		})
		if reached || !errors.Is(err, durable.ErrRestarted) {
			t.Errorf("a write failed: the outside was reached: %v, the call returned %v", reached, err)
		}
		if err := b.do("o", func(c *durable.Call) error {
			return c.Transaction(func() error { return c.Await(nil) })
		}); !errors.Is(err, durable.ErrInTransaction) {
			t.Errorf("await inside a transaction returned %v", err)
		}
	})
}

func TestTransactionIsUndone(t *testing.T) {
	inBubble(t, durable.Config{}, func(b *bench) {
		b.must("o", put("k", "before"))
		undo := errors.New("undo")
		b.must("o", func(c *durable.Call) error {
			c.Put("l", []byte("outer"))
			err := c.Transaction(func() error {
				c.Put("k", []byte("inside"))
				c.Delete("l")
				c.Put("m", []byte("new"))
				c.Transaction(func() error { return c.Put("n", []byte("inner")) })
				if all, err := c.List(durable.Range{}); len(all) != 3 || err != nil {
					t.Errorf("inside there are %d keys (%v), want 3", len(all), err)
				}
				return undo
			})
			if !errors.Is(err, undo) {
				t.Errorf("the transaction returned %v", err)
			}
			return nil
		})
		b.want("o", "k", "before")
		b.want("o", "l", "outer")
		b.want("o", "m", "")
		b.want("o", "n", "")
	})
}

func TestPanicRestartsOneObject(t *testing.T) {
	inBubble(t, durable.Config{}, func(b *bench) {
		b.must("o", put("k", "1"))
		away := make(chan error, 1)
		go func() {
			away <- b.do("o", func(c *durable.Call) error {
				return c.Await(func(context.Context) error { time.Sleep(time.Second); return nil })
			})
		}()
		synctest.Wait()
		err := b.do("o", func(c *durable.Call) error {
			c.Put("k", []byte("2"))
			c.Put("l", []byte("2"))
			panic("a bug")
		})
		if !errors.Is(err, durable.ErrPanic) || !strings.Contains(err.Error(), "a bug") {
			t.Errorf("the caller got %v", err)
		}
		if err := <-away; !errors.Is(err, durable.ErrRestarted) {
			t.Errorf("a call that was away got %v, want ErrRestarted", err)
		}
		b.want("o", "k", "1")
		b.want("o", "l", "")
		b.must("other", put("k", "1"))
	})
}

func TestLimitsOfObjects(t *testing.T) {
	inBubble(t, durable.Config{Mailbox: 2, MaxLive: 2, MaxKeys: 3}, func(b *bench) {
		release := make(chan struct{})
		blocked := func(*durable.Call) error { <-release; return nil }
		for range 3 { // one runs, two wait
			go b.do("a", blocked)
			synctest.Wait()
		}
		if err := b.do("a", blocked); !errors.Is(err, durable.ErrBusy) {
			t.Errorf("the fourth call got %v, want ErrBusy", err)
		}
		go b.do("b", blocked)
		synctest.Wait()
		if err := b.do("c", put("k", "1")); !errors.Is(err, durable.ErrBusy) {
			t.Errorf("a third object got %v, want ErrBusy", err)
		}
		close(release)
		synctest.Wait()
		for i := range 5 { // each takes the place of one that is idle
			b.must(fmt.Sprint("d", i), put("k", "1"))
		}
		if b.Live() > 2 {
			t.Errorf("%d objects are live", b.Live())
		}
		b.must("e", func(c *durable.Call) error {
			for i := range 3 {
				c.Put(fmt.Sprint(i), nil)
			}
			if err := c.Put("3", nil); !errors.Is(err, durable.ErrLimit) {
				t.Errorf("a fourth key: %v, want ErrLimit", err)
			}
			return errors.Join(c.Put("0", []byte("again")), c.Delete("1"), c.Put("3", nil))
		})
		b.must("e", func(c *durable.Call) error { // counted again after a start
			if err := c.Put("4", nil); !errors.Is(err, durable.ErrLimit) {
				t.Errorf("a fourth key: %v, want ErrLimit", err)
			}
			if err := c.Put("2", make([]byte, durable.MaxValue+1)); !errors.Is(err, durable.ErrLimit) {
				t.Errorf("a large value: %v, want ErrLimit", err)
			}
			return nil
		})
		err := b.do("f", func(c *durable.Call) error {
			for {
				if err := c.Put("k", make([]byte, durable.MaxValue)); err != nil {
					return err
				}
			}
		})
		if !errors.Is(err, durable.ErrLimit) {
			t.Errorf("a call that writes without end got %v, want ErrLimit", err)
		}
	})
}

func TestIdleObjectsArePutAway(t *testing.T) {
	inBubble(t, durable.Config{Idle: time.Minute}, func(b *bench) {
		for i := range 50 {
			b.must(fmt.Sprint("o", i), put("k", "1"))
		}
		if b.Live() != 50 {
			t.Errorf("%d objects are live, want 50", b.Live())
		}
		time.Sleep(2*time.Minute + time.Second)
		if b.Live() != 0 {
			t.Errorf("%d objects are live after two minutes", b.Live())
		}
		b.want("o7", "k", "1")
	})
}

func TestCallsThatNobodyWaitsFor(t *testing.T) {
	inBubble(t, durable.Config{}, func(b *bench) {
		var ran atomic.Bool
		go b.do("o", func(*durable.Call) error { time.Sleep(time.Second); return nil })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(b.t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := durable.Do(ctx, b.Objects, "o", func(*durable.Call) (int, error) { ran.Store(true); return 1, nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller got %v", err)
		}
		time.Sleep(2 * time.Second)
		if ran.Load() {
			t.Error("a call that had not begun ran although nobody waited")
		}
	})
}

func TestRunEndsWhatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultstore.New(faultstore.NewMemory(1), 1)
		disk.Set(faultstore.Faults{Delay: fsync})
		o, stop := start(t, durable.Config{Store: openStore(t, disk, "s")})
		results := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := durable.Do(t.Context(), o, "o", func(c *durable.Call) (int, error) {
					time.Sleep(time.Second)
					return next(c)
				})
				results <- err
			}()
			synctest.Wait()
		}
		stop()
		if err := <-results; !errors.Is(err, durable.ErrClosed) {
			t.Errorf("the call that had not begun got %v, want ErrClosed", err)
		}
		if err := <-results; err != nil {
			t.Errorf("the call that had begun got %v", err)
		}
		if _, err := durable.Do(t.Context(), o, "o", next); !errors.Is(err, durable.ErrClosed) {
			t.Errorf("a call after the end got %v, want ErrClosed", err)
		}
	})
}
