package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
				short.Usage = firstClause(f.Usage) + specOf(f).Words()
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
