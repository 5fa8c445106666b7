package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/bench/explore"
	"github.com/ropeline/ropeline/bench/explore/boot"
	"github.com/ropeline/ropeline/bench/explore/breadth"
	"github.com/ropeline/ropeline/bench/explore/replay"
	"github.com/ropeline/ropeline/bench/explore/small"
	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/node/ticket"
)

// exploreOptions is what the flags of the command say.
type exploreOptions struct {
	leaveOut     ticket.Rules
	only, replay string
	states       int
	length       time.Duration
	seed         uint64
}

// errBroken says that a search or a schedule broke a promise; what did is printed.
var errBroken = errors.New("a promise was broken")

func newExploreCommand() *cobra.Command {
	var o exploreOptions
	cmd := &cobra.Command{
		Use:   "explore",
		Short: "Search small meshes for a history that breaks the limit",
		Long: `Searches small meshes for a history that breaks the limit, and prints a short one
if there is any: through everything that can happen to the ledgers of two or
three nodes (ledgers) and while nodes make a mesh (bootstrap), and by replaying
whole nodes through operator's acts at exact moments (nodes). It ends with the
first one. docs/limit.md has what was searched.`,
		Example: `  ropeline-bench explore
  ropeline-bench explore --only ledgers --leave-out fresh-mint
  ropeline-bench explore --replay "abc/123: raise@2, m leave@1, t kill@1"`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.only, "only", "", "run one `search` alone: ledgers, bootstrap or nodes")
	f.StringVar(&o.replay, "replay", "", "run this `history` of whole nodes alone, and print what happens in it")
	leaveOutFlag(f, &o.leaveOut)
	f.IntVar(&o.states, "states", maxStates, "how many states are looked at in each small world, at most")
	f.DurationVar(&o.length, "for", 10*time.Minute, "how long whole nodes are searched")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the order in which histories of whole nodes come, and of those that are drawn")
	f.SortFlags = false
	return cmd
}

func (o *exploreOptions) run(ctx context.Context, out io.Writer) error {
	searches := []struct {
		name string
		run  func() (bool, error)
	}{
		{"ledgers", func() (bool, error) {
			return explore.Exhaust(ctx, small.Worlds(o.leaveOut), o.states, printed[small.Config](out)), nil
		}},
		{"bootstrap", func() (bool, error) {
			return explore.Exhaust(ctx, boot.Worlds(), o.states, printed[boot.Config](out)), nil
		}},
		{"nodes", func() (bool, error) { return o.nodes(ctx, out) }},
	}
	if o.replay != "" {
		if o.only != "" {
			return cli.Usagef("--replay runs one history alone: it does not go with --only")
		}
		history, err := replay.Parse(o.replay)
		if err != nil {
			return cli.Usagef("--replay: %w", err)
		}
		return broken(explore.Rerun(history, o.leaveOut, out))
	}
	known := false
	for _, s := range searches {
		if o.only == "" || o.only == s.name {
			known = true
			if err := broken(s.run()); err != nil {
				return err
			}
		}
	}
	if !known {
		return cli.Usagef("--only %q is not allowed: ledgers, bootstrap or nodes is wanted", o.only)
	}
	return ctx.Err()
}

// printed prints what became of each world.
func printed[W any](out io.Writer) func(W, breadth.Result) {
	return func(w W, r breadth.Result) {
		all := "all"
		if !r.Whole {
			all = "not all"
		}
		fmt.Fprintf(out, "%+v: %d states, %s, %v\n", w, r.States, all, r.Took.Round(time.Second/10))
		if r.Broken != "" {
			fmt.Fprintf(out, "BROKEN: %s\n", broke(r))
		}
	}
}

func (o *exploreOptions) nodes(ctx context.Context, out io.Writer) (found bool, err error) {
	h, err := explore.Nodes(ctx, replay.Search{LeaveOut: o.leaveOut, Seed: o.seed}, o.length, func(p explore.Part) {
		fmt.Fprintf(out, "%s: %d histories, %d of them without effect, %v\n", p.Name, p.Runs, p.Useless, p.Took.Round(time.Second))
	})
	if err != nil || h == nil {
		return false, err
	}
	fmt.Fprintf(out, "\n    %s\n\n", replayed(*h, o.leaveOut))
	return explore.Rerun(*h, o.leaveOut, out)
}

// replayed is the command that runs a history again.
func replayed(h replay.History, leaveOut ticket.Rules) string {
	return fmt.Sprintf("ropeline-bench explore%s --replay %q", leaveOut.Flag(), h)
}

// broken returns the error of a search, or that it found something.
func broken(found bool, err error) error {
	if err == nil && found {
		return errBroken
	}
	return err
}
