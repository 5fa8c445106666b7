package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/node/nearest"
)

// firstFlags are those that a first start and a mesh need, in the order in which help shows
// them. The others are shown by --help-all.
var firstFlags = []string{
	"origin", "listen", "total-active-users", "new-users-per-minute", "session-duration",
	"name", "site", "mesh", "join", "bootstrap-nodes", "secret-file", "data-dir", "admin", "admin-token-file",
	"tls-cert-file", "tls-key-file", "log-format", "log-level", "config", "help", "help-all",
}

// shortHelp has --help of run fit a screen. It returns what shows all.
func shortHelp(cmd *cobra.Command) (all func(*cobra.Command, []string)) {
	all = cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		first := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
		first.SortFlags = false
		for _, name := range firstFlags {
			if f := cmd.Flags().Lookup(name); f != nil {
				short := *f
				short.Usage = firstClause(f.Usage) + wordsOf(specOf(f))
				first.AddFlag(&short)
			}
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s\n\nUsage:\n  %s\n\nExamples:\n%s\n\nFlags:\n%s", cmd.Long, cmd.UseLine(), cmd.Example, first.FlagUsages())
	})
	return all
}

// firstClause returns the beginning of a meaning, which has to do for a line.
func firstClause(usage string) string {
	for _, end := range []string{"; ", ": ", ", such as ", ", each ", ", the same "} {
		usage, _, _ = strings.Cut(usage, end)
	}
	if strings.Contains(usage, "(") && !strings.Contains(usage, ")") {
		usage, _, _ = strings.Cut(usage, " (")
	}
	return usage
}

// flagMistake says what is wrong with the flags of a command, and which one was probably
// meant by one that there is not.
func flagMistake(cmd *cobra.Command, err error) error {
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
	return usageError{fmt.Errorf("%w%s\nSee %q for what is allowed", err, hint, cmd.CommandPath()+" "+all)}
}
