package operate

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const limitsPath = "/api/v1/rate_limits"

func limitPath(limit string) string { return limitsPath + "/" + escaped(limit) }

var limitColumns = []column{
	col("Limit", "name"), num("Requests", "requests_per_period"), num("In s", "period"), col("By", "characteristics"), col("Scope", "scope"),
	col("Action", "action"), col("Enabled", "enabled"), col("Expression", "expression"),
}

func newLimitCommand() *cobra.Command {
	_, list := reading("list", "List rate limits, in the order in which they are asked", "  ropeline limit list", 0, false,
		func([]string) string { return limitsPath }, rendered(listTable(limitColumns)))
	_, show := reading("show LIMIT", "Show the settings of a rate limit", "  ropeline limit show logins", 1, false,
		func(args []string) string { return limitPath(args[0]) }, titled("rate limit"))
	_, status := reading("status", "Show what a node counts, and by how much limits can be exceeded", "  ropeline limit status --watch", 0, true,
		func([]string) string { return "/api/v1/status" }, rendered(limitStatus))
	return groupOf("limit", "Make, change, look at and delete rate limits", `Rate limits are the mesh's: whichever node is told, all nodes have them within two seconds.
Settings are given as NAME=VALUE, with the names of the API; lists as a,b or as JSON.`,
		list, show, status, newLimitCreate(), newLimitSet(), newLimitDelete())
}

func newLimitCreate() *cobra.Command {
	op := &operation{}
	cmd := op.command("create NAME SETTING…", "Make a rate limit",
		`  ropeline limit create logins 'expression=http.request.uri.path eq "/login"' characteristics=ip.src period=60 requests_per_period=5 mitigation_timeout=600`, 1, -1,
		func(cmd *cobra.Command, c *client, args []string) error {
			body, err := c.settings(cmd.Context(), "RateLimitNew", args[1:], object{"name": args[0]})
			if err != nil {
				return err
			}
			raw, err := c.ask(cmd.Context(), "POST", limitsPath, nil, body)
			if err != nil {
				return err
			}
			return op.told(cmd, raw, fmt.Sprintf("rate limit %s is made", args[0]))
		})
	op.show.Bind(cmd, false)
	return cmd
}

func newLimitSet() *cobra.Command {
	op := &operation{}
	cmd := op.command("set LIMIT SETTING…", "Change settings of a rate limit", "  ropeline limit set logins requests_per_period=10\n  ropeline limit set logins enabled=false", 2, -1,
		func(cmd *cobra.Command, c *client, args []string) error {
			body, err := c.settings(cmd.Context(), "RateLimitChange", args[1:], nil)
			if err != nil {
				return err
			}
			raw, err := c.ask(cmd.Context(), "PATCH", limitPath(args[0]), nil, body)
			if err != nil {
				return err
			}
			return op.told(cmd, raw, fmt.Sprintf("rate limit %s is changed: %s", args[0], strings.Join(args[1:], " ")))
		})
	op.show.Bind(cmd, false)
	return cmd
}

func newLimitDelete() *cobra.Command {
	op := &operation{}
	cmd := op.command("delete LIMIT", "Delete a rate limit", "  ropeline limit delete logins", 1, 1,
		func(cmd *cobra.Command, c *client, args []string) error {
			raw, err := c.ask(cmd.Context(), "DELETE", limitPath(args[0]), nil, nil)
			if err != nil {
				return err
			}
			return op.told(cmd, raw, fmt.Sprintf("rate limit %s is deleted", args[0]))
		})
	op.show.Bind(cmd, false)
	return cmd
}

var limitStatusColumns = []column{
	col("Limit", "name"), col("Scope", "scope"), num("Keys", "keys"), num("Limited", "limited"),
	num("Exceeded by what comes in s", "bound", "delay_seconds"), num("At most by", "bound", "most"), num("Nodes", "bound", "nodes"),
}

// counted returns a column of what is counted for a limit, where it counts.
func counted(title string, path ...string) column {
	return column{title, func(o object) string {
		if o.at("state") != "counts" {
			return "–"
		}
		return o.number(path...)
	}, true}
}

// meshLimitColumns fit into 80 columns; "limit list" has the rest of the settings.
var meshLimitColumns = []column{
	col("Limit", "name"),
	{"Allowed", func(o object) string {
		if o.at("period") == "" {
			return "?"
		}
		return o.number("requests_per_period") + " in " + o.at("period") + " s"
	}, true},
	{"Then", func(o object) string {
		if state := o.at("state"); state != "counts" {
			return state
		}
		return o.at("action")
	}, false},
	counted("Keys", "keys", "most"), counted("Limited", "limited", "most"), counted("Over by", "most"),
}

// limitTable renders the rate limits of the mesh, and which nodes have too little memory for
// them; "" where there is no rate limit.
func limitTable(mesh object) string {
	limits := mesh.list("limits")
	if len(limits) == 0 {
		return ""
	}
	s := "\n" + tableOf("", limits, meshLimitColumns)
	for _, n := range mesh.list("nodes") {
		if lately := n.at("limits", "replaced_lately"); lately != "" && lately != "0" && n.at("state") == "alive" {
			s += "\n" + Printable(fmt.Sprintf("node %s forgot %s clients of rate limits too early, within five minutes: raise its limit-memory", n.at("name"), lately))
		}
	}
	return s
}

// limitStatus renders what a node counts.
func limitStatus(raw json.RawMessage) (string, error) {
	o, err := decoded(raw)
	if err != nil {
		return "", err
	}
	l, _ := o["limits"].(map[string]any)
	of := object(l)
	return tableOf("rate limits at node "+o.at("name"), of.list("rules"), limitStatusColumns) +
		fmt.Sprintf("\nroom for %s keys; %s were forgotten too early", of.at("keys"), of.at("replaced")), nil
}
