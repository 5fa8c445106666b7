package redis

import (
	"context"
	"errors"
	"net"

	"github.com/ropeline/ropeline/bench/rig"
)

// Start starts a Redis at listen, host:port, that keeps nothing on disk, and returns when it answers.
func Start(ctx context.Context, core rig.Core, dir, listen string) (*rig.Process, error) {
	at, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, err
	}
	p, err := rig.Start(ctx, rig.Command{
		Core: core, Name: "redis-server",
		Args: []string{"--bind", at, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no"},
	})
	if err != nil {
		return nil, err
	}
	err = p.AwaitFunc(ctx, "answers at "+listen, func(context.Context) bool {
		c, err := Dial(listen)
		if err != nil {
			return false
		}
		defer c.Close()
		_, err = c.Do("PING")
		return err == nil
	})
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}
