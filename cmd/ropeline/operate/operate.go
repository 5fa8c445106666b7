package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/cmd/cli"
)

// Commands by which operators ask a node, and tell it.

// exitCodes is what their help says of exit codes.
const exitCodes = `
Exit codes: 0 done; 1 something went wrong; 2 what was written is not understood; 3 no node
has answered; 4 the node refused it, and the message says why.`

// Commands returns them.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		newStatusCommand(), newRoomCommand(), newEventCommand(), newRuleCommand(), newLimitCommand(),
		newSiteCommand(), newNodeCommand(), newKeyCommand(), newExplainCommand(), newHealthCommand(),
	}
}

// groupOf returns a command that has others below it.
func groupOf(use, short, long string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long + "\n" + exitCodes, Args: cli.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(below...)
	return cmd
}

// operation is a command that asks a node.
type operation struct {
	client clientConfig
	show   Output
	zone   string
	yes    bool
}

// command returns a cobra command for it. args is how many words it takes, most less than 0
// for any number.
func (op *operation) command(use, short, example string, least, most int, run func(cmd *cobra.Command, c *client, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < least || most >= 0 && len(args) > most {
				return cli.Usagef("%d words are given: want %q\nSee %q for what is allowed", len(args), cmd.UseLine(), cmd.CommandPath()+" --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := op.client.open()
			if err != nil {
				return err
			}
			return run(cmd, c, args)
		},
	}
	cmd.ValidArgsFunction = op.complete
	cmd.Flags().SortFlags = false
	op.client.bind(cmd.Flags())
	return cmd
}

// withZone binds the zone of rooms.
func (op *operation) withZone(cmd *cobra.Command, usage string) *cobra.Command {
	cmd.Flags().StringVar(&op.zone, "zone", "", usage)
	return cmd
}

// query returns the query that names the zone.
func (op *operation) query() url.Values {
	if op.zone == "" {
		return nil
	}
	return url.Values{"zone": {op.zone}}
}

// sure refuses what cannot be undone unless it was confirmed.
func (op *operation) sure(what string) error {
	if op.yes {
		return nil
	}
	return cli.Usagef("%s: say --yes if that is meant", what)
}

// reading returns a command that shows an answer.
func reading(use, short, example string, args int, watch bool, path func(args []string) string, render func(args []string, raw json.RawMessage) (string, error)) (*operation, *cobra.Command) {
	op := &operation{}
	cmd := op.command(use, short, example, args, args, func(cmd *cobra.Command, c *client, args []string) error {
		return op.show.show(cmd, func(ctx context.Context) (json.RawMessage, error) {
			return c.ask(ctx, "GET", path(args), op.query(), nil)
		}, func(raw json.RawMessage) (string, error) { return render(args, raw) })
	})
	op.show.Bind(cmd, watch)
	return op, cmd
}

// told prints what an answer to an order comes to.
func (op *operation) told(cmd *cobra.Command, raw json.RawMessage, done string) error {
	return Print(cmd.OutOrStdout(), raw, op.show.WantsJSON(cmd), false, func(json.RawMessage) (string, error) { return done, nil })
}

// escaped escapes a word that stands in a path.
func escaped(s string) string { return url.PathEscape(s) }

// table ignores the words of a command.
func rendered(render func(json.RawMessage) (string, error)) func([]string, json.RawMessage) (string, error) {
	return func(_ []string, raw json.RawMessage) (string, error) { return render(raw) }
}

// titled renders an object as names and values.
func titled(title string) func([]string, json.RawMessage) (string, error) {
	return func(args []string, raw json.RawMessage) (string, error) {
		return fieldTable(fmt.Sprintf("%s %s", title, args[len(args)-1]), raw)
	}
}
