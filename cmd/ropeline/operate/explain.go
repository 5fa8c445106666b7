package operate

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/cmd/cli"
)

// explainFlags is what is asked about.
type explainFlags struct {
	visitor, room        string
	url, cookie, address string
	method               string
	header               []string
}

func newExplainCommand() *cobra.Command {
	op, f := &operation{}, &explainFlags{}
	cmd := op.command("explain", "Say why a visitor is let in, or is not",
		`  ropeline explain --url https://shop.example/tickets --cookie '__ropeline_shop=…'
  ropeline explain --room shop --visitor 0a1b…`, 0, 0,
		func(cmd *cobra.Command, c *client, _ []string) error {
			q, err := f.question(cmd, c, op)
			if err != nil {
				return err
			}
			raw, err := c.ask(cmd.Context(), "POST", "/api/v1/explain", nil, q)
			if err != nil {
				return err
			}
			return Print(cmd.OutOrStdout(), raw, op.show.WantsJSON(cmd), false, explained)
		})
	cmd.Long = "Says what would become of a request, or of a visitor whose id is known: each question\nthat is asked, in its order, with the figures. Nothing is changed by it.\n" + exitCodes
	fs := cmd.Flags()
	fs.StringVar(&f.url, "url", "", "the address that the visitor asks for")
	fs.StringVar(&f.cookie, "cookie", "", "what the visitor's browser sends as Cookie")
	fs.StringVar(&f.address, "address", "", "the visitor's IP address")
	fs.StringVar(&f.method, "method", "GET", "of the request")
	fs.StringArrayVar(&f.header, "header", nil, "a field of the request, as \"Name: value\"; may be given several times")
	fs.StringVar(&f.visitor, "visitor", "", "instead of an address: the id of the visitor, 32 hexadecimal digits")
	fs.StringVar(&f.room, "room", "", "beside it: the room, by its name or its id")
	op.show.Bind(cmd, false)
	return op.withZone(cmd, zoneUsage)
}

// question returns the body of the request.
func (f *explainFlags) question(cmd *cobra.Command, c *client, op *operation) (object, error) {
	if f.visitor != "" {
		if f.room == "" || f.url != "" {
			return nil, cli.Usagef("--visitor needs --room beside it, and no --url")
		}
		raw, err := c.ask(cmd.Context(), "GET", roomPath(f.room), op.query(), nil)
		if err != nil {
			return nil, err
		}
		o, err := decoded(raw)
		return object{"visitor": f.visitor, "room": o.at("id")}, err
	}
	u, err := url.Parse(f.url)
	if err != nil || u.Host == "" {
		return nil, cli.Usagef("--url %q: want an address such as https://shop.example/tickets", f.url)
	}
	header := map[string]string{}
	for _, line := range f.header {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, cli.Usagef("--header %q: want \"Name: value\"", line)
		}
		header[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	if f.cookie != "" {
		header["Cookie"] = f.cookie
	}
	request := object{"method": f.method, "host": u.Host, "target": u.RequestURI(), "secure": u.Scheme == "https", "header": header}
	if f.address != "" {
		request["address"] = f.address
	}
	return object{"request": request}, nil
}

// explained renders the answer for people.
func explained(raw json.RawMessage) (string, error) {
	o, err := decoded(raw)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	decided, _ := o["visitor"].(map[string]any)
	if request, ok := o["request"].(map[string]any); ok {
		decided, _ = request["decided"].(map[string]any)
		aboutRequest(say, request)
	}
	if decided != nil {
		aboutVisitor(say, decided)
	}
	return Printable(b.String()), nil
}

func aboutRequest(say func(string, ...any), r object) {
	switch {
	case r.at("refused") != "":
		say("The request is refused for its form: %s.", r.at("refused"))
		return
	case r.at("room") == "":
		say("No room is there: nobody waits.")
		aboutLimits(say, r)
		say("%s", outcomeOf(r))
		return
	}
	say("Room %s.", r.at("room"))
	if why := r.at("not_now"); why != "" {
		say("This node decides about nobody: %s.", why)
	}
	switch {
	case r.at("bypass", "crawler") == "yes":
		say("The crawler of a search engine passes the room.")
	case r.at("bypass", "rule") != "":
		say("Rule %s lets it pass the room: %s %s", r.at("bypass", "rule"), r.at("bypass", "expression"), r.at("bypass", "description"))
	}
	if cookie := r.at("cookie"); cookie != "" {
		say("Pass in the cookie: %s.", cookie)
	}
	if r["dry_run"] == true {
		say("It is a dry run: whatever is decided, everybody passes.")
	}
	aboutLimits(say, r)
	say("%s", outcomeOf(r))
}

// outcomeOf says what becomes of a request. A rate limit by which it does not pass is the
// last that is told of.
func outcomeOf(r object) string {
	if r["passes"] == true {
		return "It would reach the site."
	}
	for _, l := range r.list("limits") {
		switch {
		case l["limited"] != true || l.at("action") == "log":
		case l.at("action") == "block" || r.at("room") == "":
			return fmt.Sprintf("It would be blocked by the rate limit %s.", l.at("name"))
		case r["dry_run"] != true:
			return fmt.Sprintf("It would get the page of the room, for the rate limit %s.", l.at("name"))
		}
	}
	return "It would wait."
}

// aboutLimits says what rate limits there are, and how far the client is from them.
func aboutLimits(say func(string, ...any), r object) {
	if r["unlimited"] == true {
		say("Who waits is never held against rate limits.")
	}
	for _, l := range r.list("limits") {
		state := fmt.Sprintf("%s more are within it", l.at("remaining"))
		if l["limited"] == true {
			state = fmt.Sprintf("it is exceeded: %s, for %s s more", l.at("action"), l.at("reset_seconds"))
		}
		say("Rate limit %s, %s in %s s over the %s: %s.", l.at("name"), l.at("requests_per_period"), l.at("period_seconds"), l.at("scope"), state)
		if l.at("estimate") != "" {
			say("  About %s within the last period: %s in this one, %s s old, and %s in the one before.", l.at("estimate"), l.at("current"), l.at("elapsed_seconds"), l.at("previous"))
		}
		if l.at("counted") == "later" {
			say("  Whether it is counted depends on the response; what the site has not answered yet may come beyond it.")
		}
		if l.at("bound", "most") != "0" && l.at("bound", "most") != "" {
			say("  It can be exceeded by what comes within %s s, and by %s at most: %s nodes count together.", l.at("bound", "delay_seconds"), l.at("bound", "most"), l.at("bound", "nodes"))
		}
	}
}

func aboutVisitor(say func(string, ...any), d object) {
	say("Decided by node %s of site %s: %s (%s).", d.at("node"), d.at("site"), d.at("action"), d.at("reason"))
	say("")
	for _, step := range d.list("steps") {
		answer := "no "
		if step["yes"] == true {
			answer = "yes"
		}
		say("  %s  %s\n       %s", answer, step.at("question"), step.at("because"))
	}
	if d.at("place", "at") != "" {
		say("\nPlace: %s, %s before it.", d.at("place", "at"), d.at("place", "ahead"))
	}
	if d.at("pass", "visitor") != "" {
		say("Visitor %s, counted by node %s.", d.at("pass", "visitor"), d.at("pass", "owner"))
	}
	if end := d.at("pass", "lease_end"); end != "" {
		say("Session until %s, at node %s, ticket %s.", end, d.at("pass", "anchor"), d.at("pass", "ticket"))
	}
	say("Active %s of %s, let in within a minute %s of %s, waiting %s.", d.at("view", "active"), d.at("view", "total_active_users"),
		d.at("view", "admitted_per_minute"), d.at("view", "new_users_per_minute"), d.at("view", "waiting"))
	if _, known := d["rights"].(map[string]any); known {
		aboutRights(say, d)
	}
}

// aboutRights says what the node may do under the policy that needs rights.
func aboutRights(say func(string, ...any), d object) {
	say("Rights: %s of %s places of this node are free; %s of the room's %s places are made.", d.at("rights", "free", "places"), d.at("rights", "held", "places"),
		d.at("rights", "minted", "places"), d.at("view", "total_active_users"))
	if d.at("rights", "minter") == "" {
		say("No node is known that makes them: nobody is let in before all nodes of --bootstrap-nodes have run, or the one that mints is heard (see /readyz).")
	}
}
