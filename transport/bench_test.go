package transport

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"
)

// benchPair starts two nodes on loopback.
func benchPair(b *testing.B, change func(*Config)) (from *Mesh, to PeerID) {
	b.Helper()
	secret := NewSecret()
	var seed string
	for i := range 2 {
		cfg := LAN()
		cfg.ID, cfg.Boot, cfg.Site, cfg.Listen = testID(i+1), 1, "s", "127.0.0.1:0"
		cfg.Logger = slog.New(slog.DiscardHandler)
		var err error
		if cfg.Identity, err = IdentityFromSecret(secret, testKey(i+1), "n", "s", time.Now()); err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			change(&cfg)
			to = cfg.ID
		} else {
			cfg.Seeds = []string{seed}
		}
		m, err := New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		b.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				b.Error(err)
			}
		})
		seed, from = m.Addr().String(), m
	}
	for len(from.Members()) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	return from, to
}

func BenchmarkCall(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) {
			from, to := benchPair(b, func(c *Config) {
				c.OnCall = func(_ context.Context, _ Peer, _ uint8, req []byte) ([]byte, error) { return req, nil }
			})
			req := make([]byte, size)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := from.Call(b.Context(), to, 1, req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSend sends as fast as messages arrive, with at most 256 under way.
func BenchmarkSend(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) {
			var got atomic.Uint64
			room := make(chan struct{}, 256)
			from, to := benchPair(b, func(c *Config) {
				c.OnMessage = func(Peer, uint8, []byte) {
					got.Add(1)
					<-room
				}
			})
			msg := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			slot := uint64(0)
			for b.Loop() {
				room <- struct{}{}
				slot++
				from.Send(to, 1, slot, msg)
			}
			for got.Load() < slot {
				time.Sleep(time.Millisecond)
			}
			if s := from.Stats(); s.MessagesDropped > 0 {
				b.Errorf("%d messages dropped", s.MessagesDropped)
			}
		})
	}
}
