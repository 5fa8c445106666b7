package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// leavePatience is how long a node that stops for good waits until another one
// has its rights.
const leavePatience = 10 * time.Second

// deadPatience is how long a node that has just started may not have heard of a
// node that is to be declared dead.
const deadPatience = 10 * time.Second

// orderly is what an operator may have a node do.
type orderly interface {
	Ready() error
	Leave(ctx context.Context) error
	DeclareDead(ctx context.Context, id crdt.NodeID) error
}

// leave hands the node's rights to another one, and reports whether that has all
// of them. If not, they wait in the data directory.
func leave(ctx context.Context, n orderly, log *slog.Logger) bool {
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	log.Info("leaving: another node takes over this one's rights and sessions")
	if err := n.Leave(ctx); err != nil {
		log.Error("this node has not left: start it again from its data directory, or declare it dead if that is lost", "error", err)
		return false
	}
	log.Info("left: another node has all rights; this node's id is of no use any more")
	return true
}

// declareDead says which nodes are gone for good, as soon as the node knows of
// others. A mistake costs nothing but what it was to bring back, so the node goes
// on.
func declareDead(ctx context.Context, n orderly, dead []crdt.NodeID, log *slog.Logger) error {
	for _, id := range dead {
		switch err := declare(ctx, n, id); {
		case err == nil:
			log.Info("declared dead: its rights can be used when no session of it can last any more", "dead", id.String())
		case ctx.Err() != nil:
			return nil
		default:
			log.Error("not declared dead; look for the id in the status of other nodes, and see whether that node still runs", "dead", id.String(), "error", err)
		}
	}
	return nil
}

// declare tries until the node is ready and has heard of the dead one.
func declare(ctx context.Context, n orderly, id crdt.NodeID) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for tries := time.Duration(0); ; {
		if n.Ready() == nil {
			err := n.DeclareDead(ctx, id)
			if tries += time.Second; err == nil || tries > deadPatience {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
