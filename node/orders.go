package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/history"
)

// What an operator tells a node that runs. It is done by the loop, as everything
// is that concerns the core.

// order is something to be done by the loop.
type order struct {
	do   func(c *Core, now time.Time) error
	done chan<- error
}

// errStopped says that the loop has ended.
var errStopped = errors.New("the node is not running")

// tell has the loop do something and returns what came of it.
func (n *Node) tell(ctx context.Context, do func(c *Core, now time.Time) error) error {
	done := make(chan error, 1)
	select {
	case n.orders <- order{do, done}:
	case <-n.ended:
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-done:
		return err
	case <-n.ended:
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// doneInterval is how often it is looked whether what an operator has said is done.
const doneInterval = 20 * time.Millisecond

// until returns once the core says that something is done.
func (n *Node) until(ctx context.Context, done func(c *Core) bool) error {
	ticker := time.Tick(doneInterval)
	for {
		is := false
		if err := n.tell(ctx, func(c *Core, _ time.Time) error { is = done(c); return nil }); err != nil || is {
			return err
		}
		select {
		case <-ticker:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Leave passes all rights of this node on to another one and returns when that has
// all of them. The node gives no ticket from then on, and its identity is of no
// use any more. If ctx ends before, the rights may be with either; they are at no
// time with both, and whoever has them counts what is in use. It returns ErrNoHeir
// if no other node is there. Any goroutine may call it, while Run runs.
func (n *Node) Leave(ctx context.Context) error {
	if why := n.BootstrapWarning(true); why != "" {
		n.log.Warn("the last bootstrap node leaves", "reason", why)
	}
	if err := n.tell(ctx, (*Core).Leave); err != nil {
		return err
	}
	if err := n.until(ctx, (*Core).Left); err != nil {
		if !n.core.health.leaving.Load() {
			return fmt.Errorf("no other node has agreed to take over: %w", err)
		}
		return fmt.Errorf("rights are on their way to an heir: %w", err)
	}
	lost := false
	if err := n.tell(ctx, func(c *Core, _ time.Time) error { lost = c.PastLost(); return nil }); err == nil && lost {
		n.log.Warn("no other node has taken over what happened in rooms at this one: analytics lack it until a node starts in this data directory", "patience", pastPatience)
	}
	return nil
}

// DeclareDead says that a node is gone for good, with its data directory, as
// Core.DeclareDead does, and returns once that is on disk. If ctx ends before,
// nobody knows whether it is: say it again. Any goroutine may call it, while Run
// runs.
func (n *Node) DeclareDead(ctx context.Context, id crdt.NodeID) error {
	if _, err := n.note(ctx, func(c *Core, now time.Time) error { return c.DeclareDead(id, now) }); err != nil {
		return err
	}
	return n.tell(ctx, func(c *Core, now time.Time) error { c.lookForDown(now); return nil }) // so that it shows at once
}

// Recovered reports whether other nodes have all rights that a dead node had, be they locked or
// not. It returns ErrNotDead if nobody has declared it dead. Any goroutine may call it, while Run
// runs.
func (n *Node) Recovered(ctx context.Context, id crdt.NodeID) (all bool, err error) {
	err = n.tell(ctx, func(c *Core, _ time.Time) (err error) {
		all, err = c.allRecovered(id)
		return err
	})
	return all, err
}

// Retire ends a room for good, as Core.Retire does, and returns once that is on disk. If
// ctx ends before, nobody knows whether it is: say it again. Any goroutine may call it,
// while Run runs.
func (n *Node) Retire(ctx context.Context, id crdt.RoomID) error {
	_, err := n.note(ctx, func(c *Core, now time.Time) error { return c.Retire(id, now) })
	return err
}

// Edit has operators change the catalog, as Core.Edit does, and returns once that is on
// this node's disk and on those of all nodes in reach; these are waited for spreadPatience.
// It names the nodes that exist and have not said that it is on their disks. If ctx ends
// before, nobody knows whether it is on any: read the catalog. Any goroutine may call it,
// while Run runs.
func (n *Node) Edit(ctx context.Context, edit func(*catalog.Catalog) ([]catalog.Write, error)) (notYetAt []string, err error) {
	return n.note(ctx, func(c *Core, now time.Time) error { return c.Edit(edit, now) })
}

// Catalog returns what operators have set, as this node knows it; nil before it has opened,
// or if it follows no catalog. It is for reading. Any goroutine may call it.
func (n *Node) Catalog() *catalog.Catalog { return n.core.Catalog() }

// History answers a question about a room's past, as Core.History does. Any goroutine may call it, while Run runs.
func (n *Node) History(ctx context.Context, q history.Question) (a history.Answer, err error) {
	err = n.tell(ctx, func(c *Core, _ time.Time) (err error) {
		a, err = c.History(q)
		return err
	})
	return a, err
}

// note has the loop do something and returns once what it tells the mesh is on disk, or that
// has failed for a while, and on the disks of others as Edit says.
func (n *Node) note(ctx context.Context, do func(c *Core, now time.Time) error) (notYetAt []string, err error) {
	var act Act
	err = n.tell(ctx, func(c *Core, now time.Time) (err error) {
		act, err = c.Do(do, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	failing := 0 // looks in a row at which the store had failed
	var failed error
	err = n.until(ctx, func(c *Core) bool {
		if c.Noted(act.told) {
			failed = nil
			return true
		}
		if failed = c.storing.failed; failed == nil {
			failing = 0
		} else {
			failing++
		}
		return failing > int(storePatience/doneInterval)
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("this is done, but not on disk yet: %w", err)
	}
	return n.spread(ctx, act)
}

// spread waits until an act is on the disks of all nodes in reach, but not for long, and names
// those that have not said that they have it.
func (n *Node) spread(ctx context.Context, act Act) ([]string, error) {
	var names []string
	begun := n.Now()
	err := n.until(ctx, func(c *Core) bool {
		nodes, now := c.Answers(act, n.Now().Sub(begun))
		names = n.namesOf(nodes)
		return now
	})
	if err != nil {
		return nil, fmt.Errorf("this is done, and on the disk of this node: %w", err)
	}
	return names, nil
}

// namesOf returns what operators call some nodes, in order. The loop calls it.
func (n *Node) namesOf(nodes []crdt.NodeID) (names []string) {
	called := maps.Clone(n.core.facts.names)
	for _, p := range (*n.mesh.Load()).Members() {
		noteFact(&called, crdt.NodeID(p.ID), p.Name)
	}
	for _, id := range nodes {
		names = append(names, cmp.Or(called[id], id.String()))
	}
	slices.Sort(names)
	return names
}

// storePatience is how long an operator waits for a store that has failed. It is tried again
// every second, and may be well by then.
const storePatience = 2500 * time.Millisecond
