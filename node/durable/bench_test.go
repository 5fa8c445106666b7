package durable_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/durable"
)

// counted counts commits.
type counted struct {
	durable.Store
	commits, writes int
}

func (c *counted) Commit(batch []durable.Write) error {
	c.commits++
	c.writes += len(batch)
	return c.Store.Commit(batch)
}

func benchFile(b *testing.B) *durable.File {
	b.Helper()
	f, err := durable.Open(filepath.Join(b.TempDir(), "store"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return f
}

// BenchmarkCounter has callers draw numbers from 16 counters in a file, each caller
// the next one when the last is durable.
func BenchmarkCounter(b *testing.B) {
	for _, callers := range []int{1, 64, 512, 4096} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			store := &counted{Store: benchFile(b)}
			o, stop := start(b, durable.Config{Store: store, Mailbox: callers})
			took := make([][]time.Duration, callers)
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			begin := time.Now()
			for caller := range callers {
				object := fmt.Sprint("counter", caller%16)
				wg.Go(func() {
					for range max(1, b.N/callers) {
						called := time.Now()
						if _, err := durable.Do(context.Background(), o, object, next); err != nil {
							b.Error(err)
							return
						}
						took[caller] = append(took[caller], time.Since(called))
					}
				})
			}
			wg.Wait()
			span := time.Since(begin)
			b.StopTimer()
			stop()
			all := slices.Concat(took...)
			slices.Sort(all)
			b.ReportMetric(float64(len(all))/span.Seconds(), "calls/s")
			b.ReportMetric(float64(store.commits)/span.Seconds(), "commits/s")
			b.ReportMetric(float64(all[len(all)/2]), "p50-ns")
			b.ReportMetric(float64(all[len(all)*99/100]), "p99-ns")
		})
	}
}

// BenchmarkCommit writes to a file, one commit after the other.
func BenchmarkCommit(b *testing.B) {
	for _, writes := range []int{1, 256} {
		b.Run(fmt.Sprint("writes=", writes), func(b *testing.B) {
			f := benchFile(b)
			batch := make([]durable.Write, writes)
			for i := range batch {
				batch[i] = durable.Write{Object: "rights/0123456789abcdef", Key: fmt.Sprint("gave/", i), Value: make([]byte, 16)}
			}
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				for j := range batch {
					batch[j].Value[0], batch[j].Value[1] = byte(i), byte(i>>8)
				}
				begin := time.Now()
				if err := f.Commit(batch); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
			b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
			b.ReportMetric(float64(writes)*float64(len(took))/b.Elapsed().Seconds(), "updates/s")
		})
	}
}

// BenchmarkMemoryPerObject reports what an object costs that is live, with two keys
// of 16 bytes, and what it costs once it is put away.
func BenchmarkMemoryPerObject(b *testing.B) {
	const objects = 5000
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for b.Loop() {
		f := benchFile(b)
		o, stop := start(b, durable.Config{Store: f, Idle: 500 * time.Millisecond})
		before := heap()
		var wg sync.WaitGroup
		for i := range objects {
			wg.Go(func() {
				durable.Do(context.Background(), o, fmt.Sprint("rights/", i), func(c *durable.Call) (int, error) {
					c.Put("minted", make([]byte, 16))
					return 0, c.Put("bound", make([]byte, 16))
				})
			})
		}
		wg.Wait()
		live, n := heap(), o.Live()
		for o.Live() > 0 {
			time.Sleep(100 * time.Millisecond)
		}
		b.ReportMetric((live-before)/float64(max(n, 1)), "live-B")
		b.ReportMetric((heap()-before)/objects, "idle-B")
		stop()
	}
}
