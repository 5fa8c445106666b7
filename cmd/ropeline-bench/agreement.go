package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/cmd/ropeline-bench/agreement"
	"github.com/ropeline/ropeline/node/settings"
)

func newAgreementCommand() *cobra.Command {
	var s agreement.Set
	var without []string
	var processes string
	cmd := &cobra.Command{
		Use:   "agreement",
		Short: "Run operators' acts at random nodes of meshes in virtual time",
		Long: `Runs whole meshes of nodes, the same code that "ropeline run" runs, in virtual
time through random acts of operators at random nodes, cuts, crashes, lost disks,
nodes that join and leave, wrong clocks and long pauses. In the end all nodes
have to agree on one catalog in which each act that was answered has its effect
or was overruled by a later one. Each sequence follows from one number, and the
next one has the next number. One that fails is printed with the command that
runs it again and prints the fewest steps that break a promise.

With --processes the same acts are sent to processes, by the API, through links
that are cut: a minute or two for each sequence, and without the long pauses.`,
		Example: `  ropeline-bench agreement -n 100000
  ropeline-bench agreement -n 1 --seed 17 -v
  ropeline-bench agreement --without "wrong time"
  ropeline-bench agreement -n 10 --processes /tmp/agreement`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, kind := range without {
				s.Without = append(s.Without, agreement.Kind(kind))
			}
			if processes != "" {
				kept, err := s.JudgeProcesses(cmd.Context(), processes, cmd.OutOrStdout())
				return broken(!kept, err)
			}
			debug.SetGCPercent(schedulesGC)
			kept, err := s.Judge(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			return broken(!kept, err)
		},
	}
	f := cmd.Flags()
	s.N, s.Workers = 1000, runtime.GOMAXPROCS(0)
	f.VarP(settings.Int(1, 1<<40).At(&s.N), "sequences", "n", "how many sequences run")
	f.Uint64Var(&s.Seed, "seed", 1, "seed of the first one")
	f.StringSliceVar(&without, "without", nil, "leave steps of this `kind` out")
	f.BoolVarP(&s.Verbose, "verbose", "v", false, "print what happens in each sequence, step by step")
	f.StringVar(&processes, "processes", "", "run processes, and keep their logs and data below a `directory`; one sequence at a time")
	f.Var(settings.Int(1, 1<<16).At(&s.Workers), "workers", "how many sequences run at once")
	f.SortFlags = false
	return cmd
}
