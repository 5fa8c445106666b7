// Command ropeline is a waiting room for web sites: one binary, started on as
// many machines as it takes, with no other server behind it.
package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/cmd/ropeline/operate"
)

// Exit codes, besides those of [cli].
const (
	exitFailed     = cli.ExitFailed
	exitUsage      = cli.ExitUsage
	exitNotReached = 3 // no node has answered
	exitRefused    = 4 // the node refused it
)

func main() { cli.Main(newRootCommand(), exitCode) }

func exitCode(err error) int {
	if _, ok := errors.AsType[cli.UsageError](err); ok {
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

		Version: versionText(),
	}
	cli.Prepare(root)
	root.AddCommand(newRunCommand(), newKeygenCommand(), newVersionCommand(), newLoadCommand(), newDemoCommand(), newDoctorCommand())
	root.AddCommand(movedCommands()...)
	root.AddCommand(operate.Commands()...)
	root.SetVersionTemplate(versionLine())
	root.InitDefaultCompletionCmd() // with commands for shells, and for no others
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args, cmd.RunE = cli.NoSuchCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range cmd.Commands() {
				shell.Args = cli.NoArguments
			}
		}
	}
	return root
}

// movedCommands are those that went to another program: whoever calls one is told where it is.
func movedCommands() (all []*cobra.Command) {
	for name, now := range map[string]string{"bench": "run NAME", "rate": "rate", "simulate": "simulate"} {
		all = append(all, &cobra.Command{
			Use:                name,
			Hidden:             true,
			DisableFlagParsing: true, // none of its flags is known here
			RunE: func(*cobra.Command, []string) error {
				return cli.Usagef("\"ropeline %s\" is \"ropeline-bench %s\" now, a program of its own that no release has in it:\n"+
					"run \"make ropeline-bench\" in the sources, or go install github.com/ropeline/ropeline/cmd/ropeline-bench@latest", name, now)
			},
		})
	}
	return all
}
