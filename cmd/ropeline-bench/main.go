// Command ropeline-bench measures ropeline: beside what else a site could use, in virtual time, and by
// the load generator that the other measurements use. It is for who works on ropeline or wants to see a
// figure again; no release has it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/cmd/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), cli.StopSignals()...)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "ropeline-bench: %v\n", err)
	os.Exit(exitCode(err))
}

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

  ropeline-bench list              which measurements there are
  ropeline-bench run proxy         make one of them
  ropeline-bench compare OLD NEW   judge two files of results`,
	}
	cli.Prepare(root)
	root.AddCommand(newListCommand(), newRunCommand(), newCompareCommand(), newRateCommand(), newSimulateCommand(), newServeCommand(), newIncrementCommand())
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}
