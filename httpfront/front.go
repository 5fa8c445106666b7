package httpfront

import "context"

// Front is the public side: it serves HTTP/1.1 on one listener, in front of one
// origin.
type Front struct {
	cfg    Config
	origin target
}

// New checks cfg and returns a Front that Run will serve. It opens nothing.
func New(cfg Config) (*Front, error) {
	t, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &Front{cfg: cfg, origin: t}, nil
}

// Run serves until ctx ends.
func (f *Front) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
