package durable_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/durable"
)

// TestObjectEqualsAMap has an object do at random what a map does, with a cache that
// is too small, while commits are under way, over idle times, panics and
// transactions that are undone.
func TestObjectEqualsAMap(t *testing.T) {
	for seed := range uint64(20) {
		cfg := durable.Config{Idle: time.Second, CacheBytes: []int{300, 1500, 1 << 20}[seed%3], MaxKeys: 18}
		inBubble(t, cfg, func(b *bench) {
			rng := rand.New(rand.NewPCG(seed, 0))
			model := map[string]string{}
			for range 300 {
				before := maps.Clone(model)
				fate := rng.IntN(10)
				err := b.do("o", func(c *durable.Call) error {
					for range 1 + rng.IntN(6) {
						step(b, c, rng, model)
					}
					if fate == 0 {
						panic("a bug")
					}
					return nil
				})
				if fate == 0 {
					if !errors.Is(err, durable.ErrPanic) {
						b.t.Errorf("seed %d: a call that panicked returned %v", seed, err)
					}
					model = before
				} else if err != nil {
					b.t.Fatalf("seed %d: %v", seed, err)
				}
				if rng.IntN(20) == 0 {
					time.Sleep(3 * time.Second) // it is put away
				}
			}
		})
	}
}

var errUndo = errors.New("undo")

// step does one thing with the object and with the map. Nothing in it ends a batch.
func step(b *bench, c *durable.Call, rng *rand.Rand, model map[string]string) {
	key := fmt.Sprint("k", rng.IntN(25))
	var o []durable.Options
	for _, option := range []durable.Options{durable.AllowUnconfirmed, durable.NoCache} {
		if rng.IntN(3) == 0 {
			o = append(o, option)
		}
	}
	switch rng.IntN(6) {
	case 0, 1:
		value := strings.Repeat("v", rng.IntN(40))
		_, there := model[key]
		err := c.Put(key, []byte(value), o...)
		if full := !there && len(model) >= 18; full != errors.Is(err, durable.ErrLimit) || !full && err != nil {
			b.t.Errorf("put with %d keys: %v", len(model), err)
		}
		if err == nil {
			model[key] = value
		}
	case 2:
		if err := c.Delete(key, o...); err != nil {
			b.t.Error(err)
		}
		delete(model, key)
	case 3:
		before := maps.Clone(model)
		c.Transaction(func() error {
			step(b, c, rng, model)
			step(b, c, rng, model)
			return errUndo
		})
		clear(model)
		maps.Copy(model, before)
	case 4:
		got, err := c.Get(key, o...)
		if want, there := model[key]; err != nil || there != (got != nil) || string(got) != want {
			b.t.Errorf("%s is %q (%v), want %q", key, got, err, want)
		}
	case 5:
		r := durable.Range{Prefix: []string{"", "k1"}[rng.IntN(2)], Limit: rng.IntN(5), Reverse: rng.IntN(2) == 0}
		all, err := c.List(r)
		var want []string
		for _, key := range slices.Sorted(maps.Keys(model)) {
			if strings.HasPrefix(key, r.Prefix) {
				want = append(want, key+"="+model[key])
			}
		}
		if r.Reverse {
			slices.Reverse(want)
		}
		if r.Limit > 0 {
			want = want[:min(r.Limit, len(want))]
		}
		var got []string
		for _, e := range all {
			got = append(got, fmt.Sprintf("%s=%s", e.Key, e.Value))
		}
		if err != nil || !slices.Equal(got, want) {
			b.t.Errorf("list %+v = %q (%v), want %q", r, got, err, want)
		}
	}
}
