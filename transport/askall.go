package transport

import (
	"context"
	"sync"
)

// askWidth is how many questions of one AskAll are under way at a time.
const askWidth = 16

// Caller makes calls, as a Mesh does.
type Caller interface {
	Call(ctx context.Context, to PeerID, method uint8, req []byte) ([]byte, error)
}

// AskAll puts the same question to several peers, and hands each answer, or why there is
// none, to take, which is called by one goroutine at a time. It returns when all have
// answered or ctx has ended.
func AskAll(ctx context.Context, c Caller, to []Peer, method uint8, req []byte, take func(from Peer, answer []byte, err error)) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	places := make(chan struct{}, askWidth)
	for _, p := range to {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			b, err := c.Call(ctx, p.ID, method, req)
			mu.Lock()
			defer mu.Unlock()
			take(p, b, err)
		})
	}
	wg.Wait()
}

// AliveOf returns the peers of a list that are alive.
func AliveOf(peers []Peer) (alive []Peer) {
	for _, p := range peers {
		if p.State == Alive {
			alive = append(alive, p)
		}
	}
	return alive
}
