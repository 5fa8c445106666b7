// Command ropeline is a waiting room for web sites: one binary, started on as
// many machines as it takes, with no other server behind it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ropeline/ropeline/cmd/ropeline/operate"
)

// Exit codes.
const (
	exitFailed     = 1 // something that ran went wrong
	exitUsage      = 2 // flags or the configuration file were refused
	exitNotReached = 3 // no node has answered
	exitRefused    = 4 // the node refused it
)

// usageError is a mistake in what the caller wrote.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "ropeline: %v\n", err)
	os.Exit(exitCode(err))
}

// stopSignals are those at which a command ends in order. SIGHUP is one of them where it says that the
// terminal was closed; services get it for other reasons.
func stopSignals() []os.Signal {
	if term.IsTerminal(int(os.Stdin.Fd())) {
		return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM}
}

func exitCode(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[operate.UsageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[operate.NotReached](err); ok {
		return exitNotReached
	}
	if _, ok := errors.AsType[operate.Refused](err); ok {
		return exitRefused
	}
	return exitFailed
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "ropeline",
		Short: "A waiting room for web sites, without a centre",
		Long: `ropeline stands in front of a web site that must not be overrun. Visitors
beyond the limit queue in their browsers and are let in, in order, as places
come free. Nodes share what they count; there is no database behind them.

  ropeline run --origin http://127.0.0.1:3000     put it in front of a site`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          operate.NoSuchCommand,

		Version: versionText(),

		SuggestionsMinimumDistance: 2, // letters that may be wrong
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagMistake)
	root.AddCommand(newRunCommand(), newKeygenCommand(), newVersionCommand(), newLoadCommand(), newRateCommand(), newSimulateCommand(), newBenchCommand(), newDemoCommand(), newDoctorCommand())
	root.AddCommand(operate.Commands()...)
	root.SetVersionTemplate(versionLine())
	root.InitDefaultCompletionCmd() // with commands for shells, and for no others
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args, cmd.RunE = operate.NoSuchCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range cmd.Commands() {
				shell.Args = noArguments
			}
		}
	}
	return root
}

// noArguments refuses words that are no flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%q is not understood: %s takes flags only\nSee %q for what is allowed",
		args[0], cmd.CommandPath(), cmd.CommandPath()+" --help")}
}
