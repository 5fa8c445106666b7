//go:build linux

package heavy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
)

// growthMax is by how much a body may make the node grow.
const growthMax = 64 << 20

// measureBodies sends large bodies both ways, with a length and in chunks.
func measureBodies(ctx context.Context, p plan, r *stack) ([]row, error) {
	var rows []row
	for _, kind := range []struct {
		name string
		do   func(context.Context, string, int64) error
	}{
		{"up, with a length", func(ctx context.Context, addr string, n int64) error { return upload(ctx, addr, n, n) }},
		{"up, in chunks", func(ctx context.Context, addr string, n int64) error { return upload(ctx, addr, n, -1) }},
		{"down, with a length", func(ctx context.Context, addr string, n int64) error { return download(ctx, addr, n, "") }},
		{"down, in chunks", func(ctx context.Context, addr string, n int64) error { return download(ctx, addr, n, "yes") }},
	} {
		for range 20 { // what any request costs is not the body's
			if err := kind.do(ctx, r.addr, 1<<10); err != nil {
				return nil, fmt.Errorf("%s: %w", kind.name, err)
			}
		}
		before, err := r.node.Memory()
		if err != nil {
			return nil, err
		}
		if err := r.node.ForgetPeak(); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := kind.do(ctx, r.addr, p.body); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
		took := time.Since(start)
		meanwhile, err := r.node.Memory()
		if err != nil {
			return nil, err
		}
		grew := meanwhile.Peak - before.Total
		rows = append(rows, row{
			name:    measurement.Row("body", kind.name),
			values:  measurement.Values{"B/s": float64(p.body) / took.Seconds(), "grown-B": float64(max(grew, 0))},
			what:    fmt.Sprintf("a body of %s %s", mib(p.body), kind.name),
			came:    fmt.Sprintf("resident memory %s before, at most %s meanwhile; %.0f MiB/s", mib(before.Total), mib(meanwhile.Peak), float64(p.body)/(1<<20)/took.Seconds()),
			verdict: verdict(grew < growthMax) + fmt.Sprintf(": grew by %s, want less than %s", mib(max(grew, 0)), mib(growthMax)),
		})
	}
	return rows, nil
}

// upload sends n bytes and says that they are length, or -1.
func upload(ctx context.Context, addr string, n, length int64) error {
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+addr+"/up", io.LimitReader(zeros{}, n))
	if err != nil {
		return err
	}
	req.ContentLength = length
	got, err := body(req)
	if want := fmt.Sprint(n, " ", nil); err == nil && got != want {
		return fmt.Errorf("the origin got %q, want %q", got, want)
	}
	return err
}

func download(ctx context.Context, addr string, n int64, chunks string) error {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+addr+"/down?bytes="+strconv.FormatInt(n, 10)+"&chunks="+chunks, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if got, err := io.Copy(io.Discard, resp.Body); err != nil || got != n || resp.StatusCode != http.StatusOK || (resp.ContentLength < 0) != (chunks != "") {
		return fmt.Errorf("got status %d and %d bytes of %d, announced as %d: %v", resp.StatusCode, got, n, resp.ContentLength, err)
	}
	return nil
}

// body sends req and returns the answer of a page that is small.
func body(req *http.Request) (string, error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", resp.StatusCode, b)
	}
	return string(b), err
}
