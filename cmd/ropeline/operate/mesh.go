package operate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

func newStatusCommand() *cobra.Command {
	_, cmd := reading("status", "Show the whole mesh: rooms, sites, nodes and rate limits", "  ropeline status --watch", 0, true,
		func([]string) string { return "/api/v1/mesh" }, rendered(meshTables))
	cmd.Long = "Shows the whole mesh, as the node sees it that is asked.\n" + exitCodes
	return cmd
}

// stateOf returns what is going on in a room.
func stateOf(o object) string {
	switch {
	case o["suspended"] == true:
		return "suspended"
	case o["dry_run"] == true:
		return "dry run"
	case o["queue_all"] == true:
		return "queue all"
	case o.at("queueing_method") == "reject":
		return "rejecting"
	case o["event"] != nil:
		e := object(o["event"].(map[string]any))
		if e["prequeueing"] == true {
			return "pre-queue of " + e.at("name")
		}
		return "event " + e.at("name")
	case o.at("waiting") != "0":
		return "queueing"
	}
	return "open"
}

// placesOf returns the routes of a room of the mesh.
func placesOf(o object) string {
	var all []string
	for _, r := range o.list("routes") {
		all = append(all, orEvery(r.at("host"))+r.at("path"))
	}
	return strings.Join(all, "\n")
}

// waitOf returns how long somebody who comes now is expected to wait.
func waitOf(o object) string {
	n, ok := o["wait_seconds"].(json.Number)
	seconds, err := n.Int64()
	if !ok || err != nil {
		return "?"
	}
	if seconds == 0 {
		return "none"
	}
	return (time.Duration(seconds) * time.Second).String()
}

var liveColumns = []column{
	col("Room", "name"), col("Zone", "zone"),
	{"At", placesOf, false},
	{"State", stateOf, false},
	{"Active", func(o object) string { return o.number("active") + " / " + o.number("total_active_users") }, true},
	num("Waiting", "waiting"),
	{"In a minute", func(o object) string {
		return o.number("admitted_per_minute") + " / " + o.number("new_users_per_minute")
	}, true},
	{"Wait", waitOf, true},
}

// healthOf returns what is wrong with a node.
func healthOf(o object) string {
	var all []string
	switch {
	case o.at("state") != "alive":
		return o.at("state")
	case o["leaving"] == true:
		all = append(all, "leaving")
	case o["ready"] != true:
		all = append(all, "not ready: "+o.at("reason"))
	}
	if s := o.at("store"); s != "ok" {
		all = append(all, "disk: "+s)
	}
	if s := o.at("clock"); s != "ok" {
		all = append(all, "clock: "+s)
	}
	if len(all) == 0 {
		return "ready"
	}
	return strings.Join(all, "; ")
}

// rttOf returns the longest time to another node.
func rttOf(o object) string {
	var longest time.Duration
	times, _ := o["rtts_ns"].(map[string]any)
	for _, v := range times {
		if n, ok := v.(json.Number); ok {
			if ns, err := n.Int64(); err == nil {
				longest = max(longest, time.Duration(ns))
			}
		}
	}
	if longest == 0 {
		return ""
	}
	return longest.Round(10 * time.Microsecond).String()
}

// leadsOf returns for how many rooms a node is the counter of its site.
func leadsOf(o object) string {
	leads, _ := o["leads"].([]any)
	return fmt.Sprint(len(leads))
}

var nodeColumns = []column{
	col("Node", "name"), col("Site", "site"),
	{"State", healthOf, false},
	col("Address", "address"), col("Version", "version"), num("Starts", "boot"),
	{"Leads", leadsOf, true},
	num("Places held", "rights", "held", "places"), num("In use", "rights", "in_use"),
	{"Farthest", rttOf, true},
	col("Id", "node"),
}

// nodeStates is what of that fits into 80 columns, beside the rooms; "node list" has the rest.
var nodeStates = []column{
	col("Node", "name"), col("Site", "site"),
	{"State", healthOf, false},
	{"Leads", leadsOf, true},
	num("Places held", "rights", "held", "places"), num("In use", "rights", "in_use"),
	{"Farthest", rttOf, true},
}

var siteColumns = []column{
	col("Site", "site"), col("Frozen", "frozen"), {"Silent for", func(o object) string { return since(o.at("silent_since")) }, false},
}

// downLines says that no bootstrap node is left, and which nodes are down, what of the capacity nobody
// can use, and what to do; "" if nothing is to be said.
func downLines(o object) (s string) {
	if why, _ := o["bootstrap"].(string); why != "" {
		s = text.WrapSoft(Printable("warning: "+why), 100) + "\n"
	}
	for _, d := range o.list("down") {
		s += text.WrapSoft(Printable(d.at("message")), 100) + "\n"
	}
	return s
}

// meshTables renders the whole mesh.
func meshTables(raw json.RawMessage) (string, error) {
	o, err := decoded(raw)
	if err != nil {
		return "", err
	}
	rooms, columns := o.list("rooms"), liveColumns
	if !slices.ContainsFunc(rooms, func(room object) bool { return room.at("zone") != "default" }) {
		columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.title == "Zone" })
	}
	s := downLines(o) + tableOf("", rooms, columns) + "\n" + tableOf("", o.list("nodes"), nodeStates) + originTable(o) + limitTable(o)
	var silent []object
	for _, site := range o.list("sites") {
		if site["silent_since"] != nil || site["frozen"] == true {
			silent = append(silent, site)
		}
	}
	if len(silent) > 0 {
		s += "\nsites that are out of reach:\n" + tableOf("", silent, siteColumns)
	}
	return s, nil
}

// originTable shows the origins of all nodes; "" if there are none.
func originTable(o object) string {
	var all []object
	for _, n := range o.list("nodes") {
		for _, of := range n.list("origins") {
			of["node"] = n["name"]
			all = append(all, of)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "\n" + tableOf("", all, originColumns)
}

// originStateOf returns how an origin is.
func originStateOf(o object) string {
	if o["site_down"] == true {
		return o.at("state") + ": the site is down"
	}
	return o.at("state")
}

// errorsOf returns how much of its last requests an origin failed.
func errorsOf(o object) string {
	rate, err := strconv.ParseFloat(o.at("error_rate"), 64)
	if err != nil || o.at("recent_requests") == "0" {
		return ""
	}
	return strconv.FormatFloat(100*rate, 'f', 0, 64) + " %"
}

// tookOf returns a response time of an origin.
func tookOf(name string) func(object) string {
	return func(o object) string {
		ns, err := strconv.ParseInt(o.at(name), 10, 64)
		if err != nil || ns == 0 {
			return ""
		}
		return time.Duration(ns).Round(time.Millisecond).String()
	}
}

// lastFailureOf returns the last request that an origin failed.
func lastFailureOf(o object) string {
	f, ok := o["last_failure"].(map[string]any)
	if !ok {
		return ""
	}
	return object(f).at("at") + "\n" + object(f).at("text")
}

var originColumns = []column{
	col("Node", "node"), col("Room", "room"), col("Origin", "url"),
	{"State", originStateOf, false},
	{"Errors", errorsOf, true},
	{"p50", tookOf("p50_ns"), true},
	{"p99", tookOf("p99_ns"), true},
	num("In flight", "active"),
	{"Last failure", lastFailureOf, false},
}

func newSiteCommand() *cobra.Command {
	_, list := reading("list", "List the sites", "  ropeline site list", 0, true, func([]string) string { return "/api/v1/sites" }, rendered(listTable(siteColumns)))
	return groupOf("site", "Look at sites", "A site is a data centre with its nodes.", list)
}

func newNodeCommand() *cobra.Command {
	_, list := reading("list", "List the nodes of the mesh", "  ropeline node list --watch", 0, true, func([]string) string { return "/api/v1/nodes" }, rendered(listTable(nodeColumns)))
	_, show := reading("show NODE", "Show one node", "  ropeline node show fra-1", 1, true, func(args []string) string { return "/api/v1/nodes/" + escaped(args[0]) }, titled("node"))
	drain, leave := &operation{}, false
	drainCmd := drain.command("drain NODE", "Stop a node in order", "  ropeline node drain fra-1", 1, 1, func(cmd *cobra.Command, c *client, args []string) error {
		raw, err := c.ask(cmd.Context(), "POST", "/api/v1/nodes/"+escaped(args[0])+"/drain", nil, object{"leave": leave})
		if err != nil {
			return err
		}
		o, err := decoded(raw)
		if err != nil {
			return err
		}
		said := fmt.Sprintf("node %s stops: balancers are told, and visitors are served until its drain-delay has passed", args[0])
		if why, _ := o["warning"].(string); why != "" {
			said += "\nwarning: " + Printable(why)
		}
		return drain.told(cmd, raw, said)
	})
	drainCmd.Flags().BoolVar(&leave, "leave", false, "its rights go to another node, and it is not to be started again")
	drain.show.Bind(drainCmd, false)
	return groupOf("node", "Look at nodes, stop them, declare them dead", "Nodes go by their name or their id.", list, show, drainCmd, newDeadCommand())
}

func newKeyCommand() *cobra.Command {
	_, list := reading("list", "List the secrets of the mesh by their ids", "  ropeline key list", 0, true, func([]string) string { return "/api/v1/keys" },
		rendered(listTable([]column{col("Secret", "id"), col("State", "state"), col("In the file", "listed"), col("Waits for", "waits_for")})))
	op := &operation{}
	rotate := op.command("rotate", "Have a new secret take the place of the one that is used", "  ropeline key rotate", 0, 0, func(cmd *cobra.Command, c *client, _ []string) error {
		raw, err := c.ask(cmd.Context(), "POST", "/api/v1/keys/rotation", nil, object{})
		if err != nil {
			return err
		}
		o, err := decoded(raw)
		if err != nil {
			return err
		}
		done := fmt.Sprintf("secret %s is in the files of %s, and is used once all nodes have had it for five minutes", o.at("id"), o.at("given"))
		refused, _ := o["refused"].(map[string]any)
		for name, why := range refused {
			done += fmt.Sprintf("\n%s does not have it: %s", name, words(why))
		}
		return op.told(cmd, raw, Printable(done))
	})
	op.show.Bind(rotate, false)
	return groupOf("key", "Look at the secret of the mesh, and replace it", "Certificates between nodes, passes and proofs come from the secret, which no command shows.", list, rotate)
}
