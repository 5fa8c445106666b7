package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// leavePatience is how long a node that stops for good waits until another one
// has its rights.
const leavePatience = 10 * time.Second

// newsPatience is how long a node that has just started may not have heard of the node
// or room that an order is about.
const newsPatience = 10 * time.Second

// orderly is what an operator may have a node do.
type orderly interface {
	Ready() error
	Leave(ctx context.Context) error
	DeclareDead(ctx context.Context, id crdt.NodeID) error
	Retire(ctx context.Context, id crdt.RoomID) error
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

// obey does what the operator wants done when a node starts, one thing after the
// other, as soon as the node knows what it is about. A mistake costs nothing but what
// it was to bring about, so the node goes on.
func obey(ctx context.Context, n orderly, rights Rights, log *slog.Logger) error {
	for _, id := range rights.DeclareDead {
		insist(ctx, n, func() error { return n.DeclareDead(ctx, id) }, log.With("dead", id.String()),
			"declared dead: its rights can be used when no session of it can last any more",
			"not declared dead; look for the id in the status of other nodes, and see whether that node still runs")
	}
	for _, id := range rights.RetireRooms {
		insist(ctx, n, func() error { return n.Retire(ctx, id) }, log.With("room", id.String()),
			"retired: nobody is let into the room any more",
			"not retired; look for the id in the status of any node that has the room")
	}
	return nil
}

// insist gives an order until it is taken, or the node has been ready for a while and
// still refuses, and has the log say which.
func insist(ctx context.Context, n orderly, order func() error, log *slog.Logger, taken, refused string) {
	tries := time.Duration(0)
	repeat(ctx, time.Second, func() bool {
		if n.Ready() != nil {
			return false
		}
		err := order()
		switch tries += time.Second; {
		case err == nil:
			log.Info(taken)
			return true
		case tries > newsPatience && ctx.Err() == nil:
			log.Error(refused, "error", err)
			return true
		}
		return false
	})
}
