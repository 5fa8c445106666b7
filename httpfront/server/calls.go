package server

import (
	"context"
	"fmt"

	"github.com/ropeline/ropeline/transport"
)

// The calls that nodes make to each other beside those of rooms.
const (
	methodSecrets = 1 // what secrets a node has
	methodReport  = 2 // what a node says of itself
	methodLedger  = 3 // what rights it has of a room
	methodExplain = 4 // why a visitor is let in or is not
	methodDrain   = 5 // that it is to stop
	methodSecret  = 6 // that it is to take a new secret
	methodHistory = 7 // how a room was
)

// calls answers other nodes.
type calls map[uint8]func(ctx context.Context, from transport.Peer, req []byte) ([]byte, error)

func (c calls) onCall(ctx context.Context, from transport.Peer, method uint8, req []byte) ([]byte, error) {
	answer := c[method]
	if answer == nil {
		return nil, fmt.Errorf("call %d is not known", method)
	}
	return answer(ctx, from, req)
}
