package main

import (
	"context"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/schedules"
	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/node/settings"
	"github.com/ropeline/ropeline/node/ticket"
)

func newSchedulesCommand() *cobra.Command {
	var s schedules.Set
	cmd := &cobra.Command{
		Use:   "schedules",
		Short: "Run whole meshes in virtual time through random trouble",
		Long: `Runs whole meshes of nodes, the same code that "ropeline run" runs, in virtual
time through many schedules of random trouble, in all of which the limit has to
hold. Each follows from one number, and the next one has the next number. A
schedule that fails is printed with the command that runs it again. The measurements
schedules, stories and knock-out make the tables of the documentation with them.

A story is one change of who mints soon after a limit was changed, in a mesh that
is calm but for that: ` + "\n  " + strings.Join(schedules.Stories(), "\n  "),
		Example: `  ropeline-bench schedules -n 100000
  ropeline-bench schedules -n 1 --seed 17 -v
  ropeline-bench schedules --story "heir leaves" --leave-out fresh-mint`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runSchedules(cmd.Context(), s, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	s.N, s.Workers = 1000, runtime.GOMAXPROCS(0)
	f.VarP(settings.Int(1, 1<<40).At(&s.N), "schedules", "n", "how many schedules run")
	f.Uint64Var(&s.Seed, "seed", 1, "seed of the first one")
	f.StringVar(&s.Story, "story", "", "run this `story` alone")
	leaveOutFlag(f, &s.LeaveOut)
	f.BoolVarP(&s.Verbose, "verbose", "v", false, "print what happens in each schedule, step by step")
	f.Var(settings.Int(1, 1<<16).At(&s.Workers), "workers", "how many schedules run at once")
	f.SortFlags = false
	return cmd
}

// leaveOutFlag is for rules that no node is to follow, to see that this is noticed.
func leaveOutFlag(f *pflag.FlagSet, to *ticket.Rules) {
	f.Func("leave-out", "run without these `rules`, separated by commas: "+strings.Join(ticket.RuleNames(), ", "), func(text string) (err error) {
		*to, err = ticket.ParseRules(text)
		return err
	})
}

func runSchedules(ctx context.Context, s schedules.Set, out, errOut io.Writer) error {
	if s.Story != "" && !slices.Contains(schedules.Stories(), s.Story) {
		return cli.Usagef("--story %q is not allowed: one of these is wanted: %s", s.Story, strings.Join(schedules.Stories(), "; "))
	}
	debug.SetGCPercent(schedulesGC)
	kept, err := s.Judge(ctx, out, errOut)
	return broken(!kept, err)
}
