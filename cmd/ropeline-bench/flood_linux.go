package main

import (
	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/bench/floods"
	"github.com/ropeline/ropeline/cmd/cli"
)

// newFloodCommand is a flood, in a process of its own.
func newFloodCommand() *cobra.Command {
	var o floods.Order
	cmd := &cobra.Command{
		Use:    "flood",
		Short:  "Be the flood that a node is measured under",
		Hidden: true,
		Args:   cli.NoArguments,
		RunE:   func(cmd *cobra.Command, _ []string) error { return floods.Hold(cmd.Context(), o, cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Kind, "kind", "", "the `kind`")
	f.StringVar(&o.Address, "address", "", "`host:port` of the node")
	f.IntVar(&o.Conns, "connections", 0, "how many connections are kept open")
	f.DurationVar(&o.Over, "over", 0, "the time over which they are opened")
	return cmd
}
