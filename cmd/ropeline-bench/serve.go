package main

import (
	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/bench/rig/serve"
)

// newServeCommand is one of the servers beside this program, in a process of its own.
func newServeCommand() *cobra.Command {
	var c serve.Config
	cmd := &cobra.Command{
		Use:    "serve KIND",
		Short:  "Be one of the servers that are measured beside ropeline",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Kind = serve.Kind(args[0])
			return serve.Run(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Listen, "listen", "", "`host:port`")
	f.StringVar(&c.Site, "site", "", "`host:port` of the origin")
	f.StringVar(&c.Answer, "answer", "", "the `file` of what is answered (default: six bytes)")
	return cmd
}
