package operate

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/node/nearest"
)

// UsageError is a mistake in what the caller wrote.
type UsageError struct{ Err error }

// Error implements error.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e UsageError) Unwrap() error { return e.Err }

// NotReached says that no node has answered.
type NotReached struct{ Err error }

// Error implements error.
func (e NotReached) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e NotReached) Unwrap() error { return e.Err }

// Refused says that a node has answered, and does not do it.
type Refused struct {
	Status int    // of HTTP
	Text   string // each mistake on a line of its own
}

// Error implements error.
func (e Refused) Error() string { return e.Text }

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
	return UsageError{fmt.Errorf("there is no command %q%s\nSee %q for those there are", args[0], hint, cmd.CommandPath()+" --help")}
}
