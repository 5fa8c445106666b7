package operate

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// What a shell completes: names of rooms, events, rate limits and nodes, and settings, as the node has
// them that would be asked.

// completeWait is for how long a shell waits for a node.
const completeWait = time.Second

// schemaOfCommand says what settings a command takes, by its path.
var schemaOfCommand = map[string]string{
	"ropeline room create": "RoomNew", "ropeline room set": "RoomChange", "ropeline event create": "EventNew", "ropeline event set": "EventChange",
	"ropeline rule add": "RuleNew", "ropeline rule set": "RuleChange", "ropeline limit create": "RateLimitNew", "ropeline limit set": "RateLimitChange",
}

// complete returns what may stand next on the command line.
func (op *operation) complete(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	words := strings.Fields(cmd.Use)[1:]
	if len(words) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := op.client.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWait)
	defer cancel()
	all, directive := []string(nil), cobra.ShellCompDirectiveNoFileComp
	switch word := words[min(len(args), len(words)-1)]; {
	case word == "ROOM" && len(args) < len(words):
		all = c.names(ctx, roomsPath)
	case word == "LIMIT" && len(args) < len(words):
		all = c.names(ctx, limitsPath)
	case word == "NODE" && len(args) < len(words):
		all = c.names(ctx, "/api/v1/nodes")
	case word == "EVENT":
		all = c.names(ctx, roomPath(args[0])+"/events")
	case word == "SETTING…":
		types, err := c.fieldTypes(ctx, schemaOfCommand[cmd.CommandPath()])
		if err != nil {
			break
		}
		for name := range maps.Keys(types) {
			all = append(all, name+"=")
		}
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	all = slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, begun) })
	slices.Sort(all)
	return all, directive
}

// names returns those of a list; none if nobody answers.
func (c *client) names(ctx context.Context, path string) (all []string) {
	raw, err := c.ask(ctx, "GET", path, nil, nil)
	if err != nil {
		return nil
	}
	o, err := decoded(raw)
	if err != nil {
		return nil
	}
	for _, item := range o.list("items") {
		all = append(all, item.at("name"))
	}
	return all
}
