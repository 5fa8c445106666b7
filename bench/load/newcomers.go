package load

import (
	"bufio"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	newcomerConns = 32 // over which newcomers ask at a time
	newcomerBatch = 16 // requests are sent so many at a time, or a million would take minutes
	newcomerTime  = time.Minute
)

// Newcomers has count visitors ask a server for the first time, as fast as it takes them. head is the request of each, and told
// takes the answer; both are called by several goroutines. The first error ends it.
func Newcomers(ctx context.Context, address string, count int, head func(i int) []byte, told func(i int, r *fasthttp.Response) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range max(1, min(newcomerConns, count/newcomerBatch)) {
		wg.Go(func() {
			if err := some(ctx, address, &next, count, head, told); err != nil {
				stop(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// some has visitors come by one connection, until all have.
func some(ctx context.Context, address string, next *atomic.Int64, count int, head func(int) []byte, told func(int, *fasthttp.Response) error) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	in := bufio.NewReaderSize(conn, 64<<10)
	var resp fasthttp.Response
	for {
		from := int(next.Add(newcomerBatch)) - newcomerBatch
		if from >= count {
			return nil
		}
		var batch []byte
		to := min(from+newcomerBatch, count)
		for i := from; i < to; i++ {
			batch = append(batch, head(i)...)
		}
		_ = conn.SetDeadline(time.Now().Add(newcomerTime)) // what fails here fails in the next line
		if _, err := conn.Write(batch); err != nil {
			return err
		}
		for i := from; i < to; i++ {
			if err := resp.Read(in); err != nil {
				return err
			}
			if err := told(i, &resp); err != nil {
				return err
			}
		}
	}
}
