package room

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// scenario is the state that steps work on. See testdata/README.md for what each
// step takes.
type scenario struct {
	t        *testing.T
	settings Settings
	sites    map[string]*Site
	order    []string
	mine     crdt.Counts
	nodes    int
	now      time.Time
	history  History
	builder  Builder
	view     *View
	taken    [3]int // since the view: reserved, new, anywhere
	people   map[string]*person
}

// person is a visitor with what the pass carries.
type person struct {
	id    [16]byte
	vis   Visitor
	shown Shown
}

// arguments are the words of a step; a word without "=" has the value "yes".
type arguments map[string]string

func (s *scenario) step(words []string) string {
	s.t.Helper()
	args, name := arguments{}, ""
	for i, w := range words[1:] {
		key, value, ok := strings.Cut(w, "=")
		switch {
		case ok:
			args[key] = value
		case i == 0:
			name = w
			fallthrough
		default:
			args[key] = "yes"
		}
	}
	switch words[0] {
	case "room":
		return s.room(args)
	case "set":
		return s.set(args)
	case "event":
		return s.event(name, args)
	case "site":
		return s.site(name, args)
	case "mine":
		s.mine = s.counts(args)
		return ""
	case "view":
		return s.build(args)
	case "visitor":
		return s.visitor(args)
	case "place":
		var id [16]byte
		copy(id[:], name)
		return s.settings.Place([]byte("a key"), id, s.time(args["arrived"])).UTC().Format("15:04:05.000") + "\n"
	case "ask":
		return s.ask(name, args)
	}
	s.t.Fatalf("unknown step %q", words[0])
	return ""
}

func (s *scenario) number(v string) int {
	s.t.Helper()
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *scenario) duration(v string) time.Duration {
	s.t.Helper()
	if v == "" {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *scenario) time(v string) time.Time {
	s.t.Helper()
	if v == "" {
		return time.Time{}
	}
	return clock(s.t, v)
}

func (s *scenario) room(args arguments) string {
	*s = scenario{t: s.t, settings: Settings{Name: "shop", Policy: Even}, sites: map[string]*Site{}, people: map[string]*person{}}
	return s.set(args)
}

// set changes some settings of a room that is there.
func (s *scenario) set(args arguments) string {
	s.t.Helper()
	set := &s.settings
	for key, value := range args {
		switch key {
		case "active":
			set.TotalActiveUsers = s.number(value)
		case "new":
			set.NewUsersPerMinute = s.number(value)
		case "policy":
			set.Policy = Policy(value)
		case "method":
			set.QueueingMethod = Method(value)
		case "session":
			set.SessionDuration = s.duration(value)
		case "refresh":
			set.RefreshInterval = s.duration(value)
		case "bucket":
			set.BucketSpan = s.duration(value)
		case "kept":
			set.PlaceKept = s.duration(value)
		case "on-partition":
			set.OnPartition = OnPartition(value)
		case "freeze":
			set.ShareFreeze = s.duration(value)
		case "queue-all":
			set.QueueAll = value == "yes"
		case "suspended":
			set.Suspended = value == "yes"
		case "renewal":
			set.DisableSessionRenewal = value == "no"
		case "commands":
			set.EnabledOriginCommands = []OriginCommand{OriginCommand(value)}
		default:
			s.t.Fatalf("unknown setting %q", key)
		}
	}
	*set = set.WithDefaults()
	if err := set.Validate(); err != nil {
		return err.Error() + "\n"
	}
	return s.describe()
}

func (s *scenario) describe() string {
	set := s.settings
	out := fmt.Sprintf("%s, %s, session %v, refresh %v", set.QueueingMethod, set.Policy, set.SessionDuration, set.RefreshInterval)
	for _, f := range []struct {
		on   bool
		text string
	}{{set.QueueAll, "queue all"}, {set.Suspended, "suspended"}, {set.DisableSessionRenewal, "no renewal"}} {
		if f.on {
			out += ", " + f.text
		}
	}
	return out + "\n"
}

// event adds an event to the room.
func (s *scenario) event(name string, args arguments) string {
	s.t.Helper()
	e := Event{
		Name: name, Start: s.time(args["start"]), End: s.time(args["end"]), PrequeueStart: s.time(args["prequeue"]),
		Shuffle: args["shuffle"] == "yes", Suspended: args["suspended"] == "yes",
	}
	if v, ok := args["active"]; ok {
		e.TotalActiveUsers = new(s.number(v))
	}
	if v, ok := args["new"]; ok {
		e.NewUsersPerMinute = new(s.number(v))
	}
	if v, ok := args["session"]; ok {
		e.SessionDuration = new(s.duration(v))
	}
	if v, ok := args["method"]; ok {
		e.QueueingMethod = new(Method(v))
	}
	if v, ok := args["renewal"]; ok {
		e.DisableSessionRenewal = new(v == "no")
	}
	before := s.settings.Events
	s.settings.Events = append(before[:len(before):len(before)], e)
	if err := s.settings.Validate(); err != nil {
		s.settings.Events = before
		return err.Error() + "\n"
	}
	return ""
}

// counts reads lists such as waiting=12:00:05*3,12:01*7.
func (s *scenario) counts(args arguments) crdt.Counts {
	s.t.Helper()
	list := func(key string, at func(time.Time) int64) map[int64]int64 {
		cells := map[int64]int64{}
		for item := range strings.SplitSeq(args[key], ",") {
			if item == "" {
				continue
			}
			when, n, _ := strings.Cut(item, "*")
			cells[at(s.time(when))] += int64(s.number(n))
		}
		return cells
	}
	return crdt.Counts{
		Active: int64(s.number(args["active"])), Held: int64(s.number(args["held"])), HeldRate: int64(s.number(args["held-rate"])), Waiting: list("waiting", time.Time.Unix),
		Seen: list("seen", crdt.TickOf), Admitted: list("admitted", crdt.TickOf),
	}
}

func (s *scenario) site(name string, args arguments) string {
	if s.sites[name] == nil {
		s.order = append(s.order, name)
	}
	site := &Site{Name: name, Own: args["own"] == "yes", Gone: args["gone"] == "yes", Nodes: s.number(args["nodes"]), Counts: s.counts(args)}
	if closed, ok := args["closed"]; ok {
		site.Closed = crdt.TickOf(s.time(closed)) - 1 // up to that time
	}
	s.sites[name] = site
	if site.Own {
		s.nodes = site.Nodes
	}
	return ""
}

func (s *scenario) build(args arguments) string {
	s.now = s.time(args["at"])
	in := Input{Nodes: nodeIDs(s.nodes), Self: nodeID(s.number(args["node"])), Mine: s.mine}
	for _, name := range s.order {
		in.Sites = append(in.Sites, *s.sites[name])
	}
	in.Frozen = s.history.Observe(&s.settings, in.Sites, s.now)
	set := s.settings // later steps change them
	s.view = s.builder.Build(&set, &in, s.now)
	s.taken = [3]int{}
	if args["quiet"] == "yes" {
		return ""
	}
	v, out := s.view, &strings.Builder{}
	fmt.Fprintf(out, "active %d, waiting %d, admitted in the last minute %d; slots %d, %d of them for new visitors\n",
		v.Active, v.Waiting, v.AdmittedLast60s, v.Slots, v.SlotsNew)
	if e := v.Event; e.Active {
		fmt.Fprintf(out, "event %s until %s: %s, %d active, %d per minute\n", e.Name, hour(e.End),
			v.Settings.QueueingMethod, v.Settings.TotalActiveUsers, v.Settings.NewUsersPerMinute)
	} else if e.Prequeueing {
		fmt.Fprintf(out, "event %s starts at %s; who comes waits for it\n", e.Name, hour(e.Start))
	}
	for _, b := range v.Buckets {
		fmt.Fprintf(out, "bucket %s: %d waiting, %d reserved\n", hour(time.Unix(b.Start, 0)), b.Waiting, b.Reserved)
	}
	for _, p := range v.Sites {
		if p.Frozen && v.Settings.Policy == Escrow {
			fmt.Fprintf(out, "site %s: out of reach, with %d rights\n", p.Name, p.Held)
			continue
		}
		if p.Frozen {
			fmt.Fprintf(out, "site %s: silent, keeps its share\n", p.Name)
			continue
		}
		fmt.Fprintf(out, "site %s: %d for those who wait, %d for new visitors\n", p.Name, p.Reserved, p.New)
	}
	s.allowances(out)
	return out.String()
}

// allowances says whom this node may let in until the next view.
func (s *scenario) allowances(out *strings.Builder) {
	v, who := s.view, "this node"
	if v.Settings.Policy == Counter || v.Settings.Policy == Escrow {
		who = "this site"
	}
	var whom []string
	if v.AllowNew == Unlimited && v.OpenToNew {
		whom = append(whom, "everybody")
	} else {
		if v.AllowWaiting == Unlimited {
			whom = append(whom, "all in line")
		} else if v.AllowWaiting > 0 {
			whom = append(whom, fmt.Sprintf("%d in line before %s", v.AllowWaiting, hour(v.Cursor)))
		}
		switch {
		case v.AllowNew == 0 || v.AllowNew == Unlimited:
		case v.OpenToNew:
			whom = append(whom, fmt.Sprintf("%d of whoever asks", v.AllowNew))
		default:
			whom = append(whom, fmt.Sprintf("%d of those before %s", v.AllowNew, hour(v.Edge)))
		}
	}
	if len(whom) == 0 {
		whom = append(whom, "nobody")
	}
	fmt.Fprintf(out, "%s may let in %s\n", who, strings.Join(whom, ", then "))
	if v.AllowAnywhere > 0 {
		fmt.Fprintf(out, "anywhere: %d for new visitors\n", v.AllowAnywhere)
	}
}

func hour(t time.Time) string {
	return t.UTC().Format("15:04:05")
}

// visitor decides about a pass that is given in full, and changes nothing.
func (s *scenario) visitor(args arguments) string {
	now := s.now
	if at := args["at"]; at != "" {
		now = s.time(at)
	}
	vis := Visitor{
		Arrival: s.time(args["arrived"]), LastPoll: s.time(args["polled"]), Refresh: s.duration(args["refresh"]),
		AcceptedAt: s.time(args["accepted"]), LeaseEnd: s.time(args["lease"]),
	}
	d := s.view.Decide(vis, now)
	out := d.Action.String()
	if d.New {
		out += ", as a new visitor"
	}
	if d.Action == Wait || d.Action == TooEarly {
		arrival := vis.Arrival
		if d.New {
			arrival = now
		}
		e, _ := s.view.Estimate(arrival, Shown{})
		out += "; " + s.told(e)
	}
	return out + "\n"
}

// told says what a page would.
func (s *scenario) told(e Estimate) string {
	out := "position unknown"
	if e.Position > 0 {
		out = fmt.Sprintf("%d ahead", e.Ahead)
	}
	if e.Known {
		out += ", " + string(e.AppendFormatted(nil, s.view.Settings.QueueingMethod))
	}
	return out
}

// ask has a person ask as a browser does, with the pass of the last answer, and
// answers as a node does that is alone.
func (s *scenario) ask(name string, args arguments) string {
	s.t.Helper()
	now := s.time(args["at"])
	p := s.people[name]
	if p == nil {
		p = &person{}
		copy(p.id[:], name)
		s.people[name] = p
	}
	if arrived := args["arrived"]; arrived != "" {
		p.vis.Arrival = s.time(arrived)
		p.vis.LastPoll, p.vis.Refresh = s.time(args["polled"]), s.settings.RefreshInterval
	}
	v := s.view
	if !p.vis.Arrival.IsZero() {
		p.vis.Place = v.Settings.Place([]byte("a key"), p.id, p.vis.Arrival)
	}
	d := v.Decide(p.vis, now)
	switch out := s.admit(p, d, now); {
	case out != "":
		return out
	case d.Action == Refuse:
		*p = person{id: p.id}
		return "refused, and no place\n"
	case d.Action == TooEarly:
		e, _ := v.Estimate(p.vis.Place, p.shown)
		return "too early; " + s.told(e) + "\n"
	}
	word := "waits"
	if d.New {
		word = "waits from now on"
		p.vis, p.shown = Visitor{Arrival: now, Place: v.Settings.Place([]byte("a key"), p.id, now)}, Shown{}
	}
	var e Estimate
	e, p.shown = v.Estimate(p.vis.Place, p.shown)
	p.vis.LastPoll, p.vis.Refresh = now, v.Told(p.id, e, now)
	return fmt.Sprintf("%s, to ask again in %v; %s\n", word, p.vis.Refresh, s.told(e))
}

// admit lets a person in if the decision and the allowances have it so.
func (s *scenario) admit(p *person, d Decision, now time.Time) string {
	allow := [...]int{s.view.AllowWaiting, s.view.AllowNew, s.view.AllowAnywhere}
	take := func(classes ...int) bool {
		for _, class := range classes {
			if s.taken[class] < allow[class] {
				s.taken[class]++
				return true
			}
		}
		return false
	}
	switch {
	case d.Action == Enter:
		return "is in\n"
	case d.Action == Ask:
		return "was in; the anchor is asked\n"
	case d.Action == Apply && take(0), d.Action == Compete && take(1, 2):
		if d.New {
			p.vis = Visitor{Arrival: now}
		}
		p.vis.AcceptedAt, p.vis.LeaseEnd = now, now.Add(s.view.Settings.SessionDuration)
		return "is let in\n"
	}
	return ""
}
