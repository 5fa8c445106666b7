// Command ropeline-bench measures ropeline: beside what else a site could use, in virtual time, and by
// the load generator that the other measurements use. It is for who works on ropeline or wants to see a
// figure again; no release has it.
package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/cmd/cli"
)

func main() { cli.Main(newRootCommand(), exitCode) }

func exitCode(err error) int {
	if _, ok := errors.AsType[cli.UsageError](err); ok {
		return cli.ExitUsage
	}
	return cli.ExitFailed
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "ropeline-bench",
		Short: "Measure ropeline",
		Long: `Measures ropeline: beside other servers, in virtual time, and by a load generator
of its own.

  ropeline-bench list        which measurements there are
  ropeline-bench run proxy   make one of them`,
	}
	cli.Prepare(root)
	root.AddCommand(newListCommand(), newRunCommand(), newRateCommand(), newSimulateCommand(), newServeCommand(), newSchedulesCommand(), newAgreementCommand(), newExploreCommand())
	root.AddCommand(commandsOnLinux()...)
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}
