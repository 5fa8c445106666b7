package sim

import (
	"context"

	"github.com/ropeline/ropeline/crdt"
)

var roomID = crdt.RoomID{'s', 'i', 'm'}

// Run simulates what cfg describes. It returns early, with the cause, when ctx
// ends.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Result{Seed: cfg.Seed}, context.Cause(ctx)
}
