package proof

import (
	"sync"
	"time"
)

// cache keeps tokens for as long as they are used again.
//
// Of each shard there is a young and an old map. When the young one is full, or as old
// as tokens are used, it becomes the old one, and what was there is dropped. So nothing
// has to be looked through, and what is not asked for any more goes by itself.
type cache struct {
	span   time.Duration // for how long a token is used
	limit  int           // of one map
	shards [shardCount]shard
}

const shardCount = 64 // by a byte of the visitor's id, which is random

type shard struct {
	mu         sync.Mutex // guards the following
	young, old map[cacheKey]cached
	turned     time.Time // when young was made

	_ [24]byte // keeps neighbours' locks apart
}

type cacheKey struct {
	room    string
	visitor [16]byte
}

type cached struct {
	token string
	until time.Time // used no longer than that
	from  time.Time // nor before: clocks may be set
}

func newCache(limit int, span time.Duration) *cache {
	return &cache{span: span, limit: max(1, limit/2/shardCount)}
}

func (c *cache) shard(k cacheKey) *shard { return &c.shards[k.visitor[0]%shardCount] }

func (c *cache) get(k cacheKey, now time.Time) (string, bool) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.young[k]
	if !ok {
		e, ok = s.old[k]
	}
	return e.token, ok && now.Before(e.until) && !now.Before(e.from)
}

func (c *cache) put(k cacheKey, token string, now time.Time) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.young == nil || len(s.young) >= c.limit || now.Sub(s.turned) >= c.span || now.Before(s.turned) {
		s.young, s.old, s.turned = map[cacheKey]cached{}, s.young, now
	}
	s.young[k] = cached{token, now.Add(c.span), now}
}
