package main

import (
	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/bench/suite"
	"github.com/ropeline/ropeline/cmd/cli"
)

// newServeCommand is the server beside this program, in a process of its own.
func newServeCommand() *cobra.Command {
	var listen, answer string
	cmd := &cobra.Command{
		Use:    "serve",
		Short:  "Be the server that is measured beside ropeline",
		Hidden: true,
		Args:   cli.NoArguments,
		RunE:   func(cmd *cobra.Command, _ []string) error { return suite.Serve(cmd.Context(), listen, answer) },
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "", "`host:port`")
	f.StringVar(&answer, "answer", "", "the `file` of what is answered")
	return cmd
}
