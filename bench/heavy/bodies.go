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
	"github.com/ropeline/ropeline/bench/rig"
)

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
