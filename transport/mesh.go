package transport

import (
	"context"
	"net/netip"
	"time"
)

// Mesh is one node's part of the mesh. Make it with [New], then call
// [Mesh.Run].
type Mesh struct {
	cfg Config
}

// New checks cfg and binds the socket, so that Addr is known. It starts
// nothing.
func New(cfg Config) (*Mesh, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Mesh{cfg: cfg}, nil
}

// Run does the work of the mesh until ctx ends, then leaves gracefully.
func (m *Mesh) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Addr returns the address bound.
func (m *Mesh) Addr() netip.AddrPort { return netip.AddrPort{} }

// Join asks the nodes at seeds to take this one in and returns how many did.
func (m *Mesh) Join(ctx context.Context, seeds ...string) (int, error) { return 0, ErrUnreachable }

// Members returns the other nodes, ordered by ID.
func (m *Mesh) Members() []Peer { return nil }

// SetReady tells the others whether this node takes traffic.
func (m *Mesh) SetReady(ready bool) {}

// Call asks a peer and waits for its answer.
func (m *Mesh) Call(ctx context.Context, to PeerID, method uint8, req []byte) ([]byte, error) {
	return nil, ErrUnreachable
}

// Send tells a peer something without waiting.
func (m *Mesh) Send(to PeerID, kind uint8, slot uint64, msg []byte) {}

// RTT returns the round-trip time to a peer.
func (m *Mesh) RTT(id PeerID) (time.Duration, bool) { return 0, false }

// Offset returns how far the clock of a peer is ahead of this node's.
func (m *Mesh) Offset(id PeerID) (time.Duration, bool) { return 0, false }

// Stats returns counters since New.
func (m *Mesh) Stats() Stats { return Stats{} }
