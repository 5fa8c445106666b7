package server

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestNobodyWaitsForAFileThatHangs has parts end at once, in a second, and never.
func TestNobodyWaitsForAFileThatHangs(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		took time.Duration // until the part ends after it was told to; negative: it ended before
		want error
	}{{"ended before", -1, broken}, {"at once", 0, broken}, {"in a second", time.Second, broken}, {"never", time.Hour, nil}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			if tt.took >= 0 {
				time.AfterFunc(time.Minute, cancel)
			}
			defer cancel()
			began := time.Now()
			err := looksAt("a file", func(ctx context.Context) error {
				if tt.took >= 0 {
					<-ctx.Done()
					time.Sleep(tt.took)
				}
				return broken
			}, slog.New(slog.DiscardHandler))(ctx)
			want := time.Minute + min(tt.took, looksEndWithin)
			if tt.took < 0 {
				want = 0
			}
			if took := time.Since(began); took != want || !errors.Is(err, tt.want) {
				t.Errorf("%s: it ended after %v with %v, want %v and %v", tt.name, took, err, want, tt.want)
			}
			time.Sleep(2 * time.Hour) // for all goroutines to end
		})
	}
}
