// Package cli has what the programs under cmd have in common: how they refuse what they do not
// understand, the codes they exit with, and the line in which they show progress.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/ropeline/ropeline/node/nearest"
)

// Exit codes.
const (
	ExitFailed = 1 // something that ran went wrong
	ExitUsage  = 2 // flags or a file of settings were refused
)

// UsageError is a mistake in what the caller wrote.
type UsageError struct{ Err error }

// Usagef returns a [UsageError] with a text as of [fmt.Errorf].
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Error implements error.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e UsageError) Unwrap() error { return e.Err }

// StopSignals are those at which a command ends in order. SIGHUP is one of them where it says that the
// terminal was closed; services get it for other reasons.
func StopSignals() []os.Signal {
	if term.IsTerminal(int(os.Stdin.Fd())) {
		return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM}
}

// Main runs a command until it ends or the process is told to stop, and ends the process with the
// exit code of its error, which it prints under the command's name.
func Main(root *cobra.Command, exitCode func(error) int) {
	ctx, stop := signal.NotifyContext(context.Background(), StopSignals()...)
	err := root.ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	tell(fmt.Sprintf("%s: %v\n", root.Name(), err))
	os.Exit(exitCode(err))
}

// tellLimit is how long the end of a process waits for who reads its errors.
const tellLimit = 2 * time.Second

// tell prints an error to who reads them, who may have stopped reading.
func tell(text string) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		fmt.Fprint(os.Stderr, text)
	}()
	select {
	case <-said:
	case <-time.After(tellLimit):
	}
}

// Prepare has the root of a program refuse what it does not understand in one way. Errors are for
// its main to print.
func Prepare(root *cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SuggestionsMinimumDistance = 2 // letters that may be wrong
	root.Args = NoSuchCommand
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.SetFlagErrorFunc(FlagMistake)
}

// NoSuchCommand refuses words after a command that has others below it: whoever wrote them
// meant one of these.
func NoSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if all := cmd.SuggestionsFor(args[0]); len(all) > 0 {
		near, ok := nearest.Name(args[0], all)
		if !ok {
			near = all[0]
		}
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return Usagef("there is no command %q%s\nSee %q for those there are", args[0], hint, cmd.CommandPath()+" --help")
}

// NoArguments refuses words that are no flags.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Usagef("%q is not understood: %s takes flags only\nSee %q for what is allowed",
		args[0], cmd.CommandPath(), cmd.CommandPath()+" --help")
}

// FlagMistake says what is wrong with the flags of a command, and which one was probably
// meant by one that there is not.
func FlagMistake(cmd *cobra.Command, err error) error {
	hint := ""
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if near, ok := nearest.Name(unknown.GetSpecifiedName(), names); ok {
			hint = fmt.Sprintf("; did you mean --%s?", near)
		}
	}
	all := "--help"
	if cmd.Flags().Lookup("help-all") != nil {
		all = "--help-all"
	}
	return Usagef("%w%s\nSee %q for what is allowed", err, hint, cmd.CommandPath()+" "+all)
}

// Share returns part of whole in percent, for the note of a table; nothing of nothing.
func Share(part, whole int) string {
	if whole == 0 || part == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
