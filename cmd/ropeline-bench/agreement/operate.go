package agreement

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// Fault says what is written, in place of what should be, where a room is changed or dropped: to see that it is
// noticed. A nil one has all be right.
type Fault func(cat *catalog.Catalog, was, is *catalog.Room) []catalog.Write

var errNothing = errors.New("there is nothing of that kind here, or it cannot be changed now")

// act has an operator do something at a node.
func (w *world) act(m *machine, s Step) {
	if m.core == nil || !m.core.Ready() {
		return
	}
	w.deeds++
	d := &deed{name: fmt.Sprintf("%s (act %d at node %d)", s.Do, w.deeds, m.no), at: m.ID, began: w.now, wrong: m.wrong()}
	e := &editing{w: w, by: d, s: s}
	core := m.core
	a, err := core.Do(func(c *node.Core, now time.Time) error {
		return c.Edit(func(cat *catalog.Catalog) ([]catalog.Write, error) {
			return e.writes(cat, now)
		}, now)
	}, w.time(m))
	if err != nil {
		w.note("%s: %v", d.name, err)
		return
	}
	w.note("%s: %s", d.name, strings.Join(e.said, ", "))
	for _, do := range e.effects {
		do()
	}
	told, until := core.Told(), w.now+patience
	w.post(m, nil)
	w.every(10*time.Millisecond, 0, func() bool {
		if m.core != core {
			return false
		}
		late, waits := core.NotYetAt(a)
		if !core.Noted(told) || waits && w.now < until {
			return true
		}
		w.answer(m, d, late)
		return false
	})
}

// patience is how long an operator waits for nodes in reach.
const patience = 2 * time.Second

// answer notes who has an act on its disk, as the answer says: of the nodes that its own sees, and of those that it has to know
// of though it does not see them now, all that are not named.
func (w *world) answer(m *machine, d *deed, late []crdt.NodeID) {
	d.answered, d.ended, d.holders = true, w.now, map[crdt.NodeID]bool{d.at: true}
	for _, o := range w.nodes {
		if l := m.links[o.ID]; (l != nil && l.up || m.knows[o.ID]) && !slices.Contains(late, o.ID) {
			d.holders[o.ID] = true
		}
	}
	w.result.Answered++
	if slices.ContainsFunc(late, func(id crdt.NodeID) bool { return !w.truth.lost[id] }) {
		w.result.Named++
	}
	w.note("%s is answered; on %d disks", d.name, len(d.holders))
}

// editing is one change of a catalog.
type editing struct {
	w       *world
	by      *deed
	s       Step
	said    []string
	effects []func() // on what is true
}

func (e *editing) sets(id, field, value string) {
	e.said = append(e.said, fmt.Sprintf("%.8s %s %.40s", id, field, value))
	e.effects = append(e.effects, func() {
		x := e.w.truth.things[id]
		x.fields[field] = append(x.fields[field], entry{e.by, value})
	})
}

func (e *editing) makes(id, in string, fields map[string]string) {
	e.said = append(e.said, "+"+id[:8])
	e.effects = append(e.effects, func() { e.w.truth.make(id, in, e.by, fields) })
}

func (e *editing) drops(id string) {
	e.said = append(e.said, "-"+id[:8])
	e.effects = append(e.effects, func() { x := e.w.truth.things[id]; x.gone = append(x.gone, e.by) })
}

func (t *truth) make(id, in string, by *deed, fields map[string]string) {
	x := &thing{room: in, made: by, fields: map[string][]entry{}}
	for name, value := range fields {
		x.fields[name] = []entry{{by, value}}
	}
	t.things[id] = x
}

// writes returns what is to be written for the step, and notes what that is to come to.
func (e *editing) writes(cat *catalog.Catalog, now time.Time) ([]catalog.Write, error) {
	switch e.s.Do {
	case MakeLimit, ChangeLimit, MoveLimit, DropLimit:
		was := cat.RateLimits()
		is, err := e.limits(cat.RateLimits(), now)
		e.setsChanged(allLimits, orderOf(was, idOfLimit), orderOf(is, idOfLimit))
		return cat.LimitWrites(was, is), err
	case ChangeZone:
		name := zones[e.s.Thing%len(zones)]
		z := cat.Zone(name)
		was := fieldsOfZone(z)
		z.SearchEngineCrawlerBypass = !z.SearchEngineCrawlerBypass
		e.setsChanged(name, was, fieldsOfZone(z))
		return catalog.ZoneWrites(name, z), nil
	case MakeRoom:
		r := e.room(now)
		return cat.Writes(nil, r), nil
	}
	rooms := slices.Collect(cat.Rooms())
	if len(rooms) == 0 {
		return nil, errNothing
	}
	was := rooms[e.s.Thing%len(rooms)]
	is := was.Clone()
	id := was.Settings.ID.String()
	var err error
	switch e.s.Do {
	case DropRoom:
		e.drops(id)
		return e.differences(cat, was, nil), nil
	case ChangeRoom, GivePage:
		if was.Incomplete != "" {
			return nil, errNothing
		}
		e.changeRoom(is, id)
	case MakeEvent, ChangeEvent, DropEvent:
		if was.Incomplete != "" {
			return nil, errNothing
		}
		err = e.events(is, id, now)
	default:
		err = e.rules(is, id, now)
		e.setsChanged(id, orderOf(was.Rules, idOfRule), orderOf(is.Rules, idOfRule))
	}
	if err == nil && cat.Check(was, nil) == nil {
		err = cat.Check(is, nil)
	}
	return e.differences(cat, was, is), err
}

func (e *editing) differences(cat *catalog.Catalog, was, is *catalog.Room) []catalog.Write {
	if e.w.fault != nil {
		return e.w.fault(cat, was, is)
	}
	return cat.Writes(was, is)
}

// id returns one that nobody has.
func (e *editing) id() (id [16]byte) {
	e.w.ids++
	id[0], id[1], id[2] = 0xdd, byte(e.w.ids>>8), byte(e.w.ids)
	return id
}

func (e *editing) room(now time.Time) *catalog.Room {
	s := settingsOf(crdt.RoomID(e.id()))
	r := &catalog.Room{Zone: zones[e.s.Thing%len(zones)], Created: now.Truncate(time.Millisecond), Settings: s}
	if e.s.Value%3 == 0 {
		r.Settings.Front.CustomPage = page(e.s.Value)
	}
	e.makes(s.ID.String(), "", fieldsOfRoom(r))
	return r
}

// page returns a text of some pieces.
func page(value int) string { return strings.Repeat(fmt.Sprintf("<p>page %d</p>", value), 20+value*5) }

func (e *editing) changeRoom(is *catalog.Room, id string) {
	was, v := fieldsOfRoom(is), e.s.Value
	switch {
	case e.s.Do == GivePage:
		is.Settings.Front.CustomPage = page(v)
	case v%8 == 0:
		is.Settings.TotalActiveUsers = 1000 + v
	case v%8 == 1:
		is.Settings.NewUsersPerMinute = 1000 + v
	case v%8 == 2:
		is.Settings.Suspended = !is.Settings.Suspended
	case v%8 == 3:
		is.Settings.QueueAll = !is.Settings.QueueAll
	case v%8 == 4:
		is.Description = fmt.Sprint("text ", v)
	case v%8 == 5:
		is.Settings.Front.Message = fmt.Sprint("message ", v)
	case v%8 == 6:
		is.Settings.Front.CustomPage = ""
	default:
		is.Settings.SessionDuration = time.Duration(60+v) * time.Second
	}
	e.setsChanged(id, was, fieldsOfRoom(is))
}

func (e *editing) setsChanged(id string, was, is map[string]string) {
	for name, value := range is {
		if was[name] != value {
			e.sets(id, name, value)
		}
	}
}

func (e *editing) events(is *catalog.Room, in string, now time.Time) error {
	if e.s.Do == MakeEvent {
		id := catalog.ID(e.id())
		start := now.Add(24 * time.Hour * time.Duration(1+e.w.ids)).Truncate(time.Second).UTC()
		x := catalog.Event{ID: id, Created: now.Truncate(time.Millisecond), Event: room.Event{Name: "event-" + id.String(), Start: start, End: start.Add(time.Hour)}}
		is.Events = append(is.Events, x)
		e.makes(id.String(), in, fieldsOfEvent(&x))
		return nil
	}
	if len(is.Events) == 0 {
		return errNothing
	}
	i, v := e.s.Node%len(is.Events), e.s.Value
	x := &is.Events[i]
	id, was := x.ID.String(), fieldsOfEvent(x)
	switch {
	case e.s.Do == DropEvent:
		e.drops(id)
		is.Events = slices.Delete(is.Events, i, i+1)
		return nil
	case v%4 == 0:
		x.TotalActiveUsers = &v
	case v%4 == 1:
		x.Suspended = !x.Suspended
	case v%4 == 2:
		x.Description = fmt.Sprint("text ", v)
	default:
		text := page(v)
		x.CustomPage = &text
	}
	e.setsChanged(id, was, fieldsOfEvent(x))
	return nil
}

func (e *editing) rules(is *catalog.Room, in string, now time.Time) error {
	add := func() {
		id := catalog.ID(e.id())
		x := catalog.Rule{ID: id, Version: 1, Created: now.Truncate(time.Millisecond), Rule: room.Rule{Expression: expression(e.w.ids), Action: room.Bypass}}
		is.Rules = append(is.Rules, x)
		e.makes(id.String(), in, fieldsOfRule(&x))
	}
	switch {
	case e.s.Do == MakeRule:
		add()
		return nil
	case e.s.Do == ReplaceRules:
		for i := range is.Rules {
			e.drops(is.Rules[i].ID.String())
		}
		is.Rules = nil
		add()
		add()
		return nil
	case len(is.Rules) == 0:
		return errNothing
	}
	i := e.s.Node % len(is.Rules)
	x := &is.Rules[i]
	id, was := x.ID.String(), fieldsOfRule(x)
	switch {
	case e.s.Do == DropRule:
		e.drops(id)
		is.Rules = slices.Delete(is.Rules, i, i+1)
		return nil
	case e.s.Do == MoveRule:
		return move(is.Rules, i, e.s.Value)
	case e.s.Value%2 == 0:
		x.Disabled = !x.Disabled
	default:
		x.Description = fmt.Sprint("text ", e.s.Value)
	}
	x.Version++
	e.setsChanged(id, was, fieldsOfRule(x))
	return nil
}

func expression(n int) string { return fmt.Sprintf(`http.request.uri.path eq "/%d"`, n) }

func (e *editing) limits(is []catalog.RateLimit, now time.Time) ([]catalog.RateLimit, error) {
	if e.s.Do == MakeLimit {
		id := limit.ID(e.id())
		x := catalog.RateLimit{Version: 1, Created: now.Truncate(time.Millisecond), Rule: ruleOf(id)}
		e.makes(id.String(), "", fieldsOfLimit(&x))
		return append(is, x), nil
	}
	if len(is) == 0 {
		return nil, errNothing
	}
	i, v := e.s.Thing%len(is), e.s.Value
	x := &is[i]
	id, was := x.ID.String(), fieldsOfLimit(x)
	switch {
	case e.s.Do == DropLimit:
		e.drops(id)
		return slices.Delete(is, i, i+1), nil
	case e.s.Do == MoveLimit:
		return is, move(is, i, e.s.Value)
	case x.Incomplete:
		return nil, errNothing
	case v%4 == 0:
		x.RequestsPerPeriod = v
	case v%4 == 1:
		x.Disabled = !x.Disabled
	case v%4 == 2:
		x.Description = fmt.Sprint("text ", v)
	default:
		x.Response.Content = page(v)
	}
	x.Version++
	e.setsChanged(id, was, fieldsOfLimit(x))
	return is, nil
}

// move puts one of some things elsewhere among them.
func move[T any](all []T, from, to int) error {
	if to %= len(all); to == from {
		return errNothing
	}
	x := all[from]
	copy(all[from:], all[from+1:])
	copy(all[to+1:], all[to:len(all)-1])
	all[to] = x
	return nil
}

func idOfRule(x *catalog.Rule) string       { return x.ID.String() }
func idOfLimit(x *catalog.RateLimit) string { return x.ID.String() }

// orderOf returns the field that an order is.
func orderOf[T any](all []T, id func(*T) string) map[string]string {
	var ids []string
	for i := range all {
		ids = append(ids, id(&all[i])[:8])
	}
	return map[string]string{ordered: strings.Join(ids, " ")}
}

// zones are those that there are, and allLimits is what has the order of the rate limits.
var zones = []string{catalog.DefaultZone, "shop", "tickets"}

const allLimits = "the rate limits"

func fieldsOfZone(z catalog.Zone) map[string]string {
	return map[string]string{"crawlers": strconv.FormatBool(z.SearchEngineCrawlerBypass)}
}

func fieldsOfRoom(r *catalog.Room) map[string]string {
	s := &r.Settings
	return map[string]string{
		"name and host": r.Zone + " " + s.Name + " " + s.Host + s.Path, "incomplete": r.Incomplete,
		"total_active_users": strconv.Itoa(s.TotalActiveUsers), "new_users_per_minute": strconv.Itoa(s.NewUsersPerMinute),
		"suspended": strconv.FormatBool(s.Suspended), "queue_all": strconv.FormatBool(s.QueueAll), "description": r.Description,
		"message": s.Front.Message, "page": s.Front.CustomPage, "session_duration": s.SessionDuration.String(),
	}
}

func fieldsOfEvent(x *catalog.Event) map[string]string {
	all := map[string]string{
		"name and times": fmt.Sprint(x.Name, x.Start.UTC(), x.End.UTC()), "suspended": strconv.FormatBool(x.Suspended), "description": x.Description,
		"total_active_users": "", "page": "",
	}
	if x.TotalActiveUsers != nil {
		all["total_active_users"] = strconv.Itoa(*x.TotalActiveUsers)
	}
	if x.CustomPage != nil {
		all["page"] = *x.CustomPage
	}
	return all
}

func fieldsOfRule(x *catalog.Rule) map[string]string {
	return map[string]string{"expression": x.Expression, "enabled": strconv.FormatBool(!x.Disabled), "description": x.Description}
}

func fieldsOfLimit(x *catalog.RateLimit) map[string]string {
	return map[string]string{
		"name": x.Name + x.Expression, "incomplete": strconv.FormatBool(x.Incomplete), "requests_per_period": strconv.Itoa(x.RequestsPerPeriod),
		"enabled": strconv.FormatBool(!x.Disabled), "description": x.Description, "content": x.Response.Content,
	}
}

// shownBy returns what a catalog has.
func shownBy(cat *catalog.Catalog) shown {
	is := shown{}
	for r := range cat.Rooms() {
		is[r.Settings.ID.String()] = fieldsOfRoom(r)
		maps.Copy(is[r.Settings.ID.String()], orderOf(r.Rules, idOfRule))
		for i := range r.Events {
			is[r.Events[i].ID.String()] = fieldsOfEvent(&r.Events[i])
		}
		for i := range r.Rules {
			is[r.Rules[i].ID.String()] = fieldsOfRule(&r.Rules[i])
		}
	}
	for _, l := range cat.RateLimits() {
		is[l.ID.String()] = fieldsOfLimit(&l)
	}
	is[allLimits] = orderOf(cat.RateLimits(), idOfLimit)
	for _, name := range zones {
		is[name] = fieldsOfZone(cat.Zone(name))
	}
	return is
}
