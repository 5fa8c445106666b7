package agreement

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
)

// What operators do by the API. Things are known by names that stay, as an act that was not answered tells no id.

// item is an object of the API.
type item map[string]any

func (i item) text(field string) string {
	text, _ := json.Marshal(i[field])
	return string(text)
}

// kept are the fields of each kind of thing that are looked at.
var kept = map[string][]string{
	"room":  {"host", "total_active_users", "new_users_per_minute", "suspended", "queue_all", "description", "message", "custom_page_html", "session_duration"},
	"event": {"event_start_time", "event_end_time", "suspended", "description", "custom_page_html"},
	"rule":  {"enabled", "description"},
	"limit": {"requests_per_period", "enabled", "description", "content"},
	"zone":  {"search_engine_crawler_bypass"},
}

func (i item) fields(kind string) map[string]string {
	all := map[string]string{}
	for _, field := range kept[kind] {
		all[field] = i.text(field)
	}
	return all
}

// key returns what a thing is known by.
func (i item) key(kind string) string {
	field := map[string]string{"rule": "expression", "zone": "zone"}[kind]
	if field == "" {
		field = "name"
	}
	return kind + " " + strings.Trim(i.text(field), `"`)
}

// order returns the field that an order is.
func order(kind string, all []item) map[string]string {
	var keys []string
	for _, i := range all {
		keys = append(keys, i.key(kind))
	}
	return map[string]string{ordered: strings.Join(keys, ", ")}
}

// send asks a node for something, and returns the status, 0 if there is no answer, and whom it names as late.
func (r *real) send(p *process, method, path string, body, answer any) (status int, late []string, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(r.ctx, method, "http://"+p.Place.Admin+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, nil, fmt.Errorf("%s %s at %s: %s", method, path, p.Name, resp.Status)
	}
	if names := resp.Header.Get("Ropeline-Not-Yet-At"); names != "" {
		late = strings.Split(names, ", ")
	}
	if answer != nil {
		err = json.NewDecoder(resp.Body).Decode(answer)
	}
	return resp.StatusCode, late, err
}

// list returns what a node has of a kind.
func (r *real) list(p *process, path string) ([]item, error) {
	var is struct{ Items []item }
	_, _, err := r.send(p, http.MethodGet, path, nil, &is)
	return is.Items, err
}

// shownBy returns what a node has.
func (r *real) shownBy(p *process) (shown, error) {
	is := shown{}
	add := func(kind string, all []item) {
		for _, i := range all {
			is[i.key(kind)] = i.fields(kind)
		}
	}
	rooms, err := r.list(p, "/api/v1/rooms")
	if err != nil {
		return nil, err
	}
	add("room", rooms)
	for _, room := range rooms {
		for _, kind := range []string{"event", "rule"} {
			all, err := r.list(p, "/api/v1/rooms/"+room["id"].(string)+"/"+kind+"s")
			if err != nil {
				return nil, err
			}
			add(kind, all)
			if kind == "rule" {
				is[room.key("room")][ordered] = order(kind, all)[ordered]
			}
		}
	}
	limits, err := r.list(p, "/api/v1/rate_limits")
	if err != nil {
		return nil, err
	}
	add("limit", limits)
	is[allLimits] = order("limit", limits)
	for _, name := range zones {
		var z item
		if _, _, err := r.send(p, http.MethodGet, "/api/v1/zones/"+name, nil, &z); err != nil {
			return nil, err
		}
		add("zone", []item{z})
	}
	return is, nil
}

// request is what an act sends, and what it is to come to.
type request struct {
	method, path string
	body         any
	effects      []func(t *truth, by *deed)
}

func (q *request) sets(key string, fields map[string]string) {
	q.effects = append(q.effects, func(t *truth, by *deed) {
		for name, value := range fields {
			if x := t.things[key]; x != nil {
				x.fields[name] = append(x.fields[name], entry{by, value})
			}
		}
	})
}

func (q *request) makes(kind, in string, i item, set item) {
	fields := set.fields(kind)
	for name, value := range i.fields(kind) {
		if value != "null" {
			fields[name] = value
		}
	}
	q.effects = append(q.effects, func(t *truth, by *deed) { t.make(i.key(kind), in, by, fields) })
}

func (q *request) drops(key string) {
	q.effects = append(q.effects, func(t *truth, by *deed) {
		if x := t.things[key]; x != nil { // else its making was refused, and yet it was there: that is seen in the end
			x.gone = append(x.gone, by)
		}
	})
}

// act has an operator do something at a node.
func (r *real) act(p *process, s Step) {
	began := time.Since(r.began)
	before, err := r.ask(p)
	if err != nil || !before.Ready {
		return
	}
	r.mu.Lock()
	r.deeds++
	d := &deed{name: fmt.Sprintf("%s (act %d at %s)", s.Do, r.deeds, p.Name), at: p.id, began: began, wrong: p.wrong}
	r.mu.Unlock()
	q, err := r.plan(p, s)
	if err != nil {
		return
	}
	r.mu.Lock()
	for _, do := range q.effects { // others may go on with it before this is answered
		do(&r.truth, d)
	}
	r.mu.Unlock()
	status, late, err := r.send(p, q.method, q.path, q.body, nil)
	after, lost := p.Status(r.ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note("%s: %s %s %v: %v, late: %v", d.name, q.method, q.path, q.body, err, late)
	switch {
	case err == nil:
		d.answered, d.ended = true, time.Since(r.began)
		d.holders = map[crdt.NodeID]bool{d.at: true}
		if lost == nil {
			hold(d, before, after, late)
		}
		r.result.Answered++
		if len(late) > 0 {
			r.result.Named++
		}
	case 400 <= status && status < 500:
		r.truth.takeBack(d)
	}
}

// takeBack takes back what an act was to come to, which was refused.
func (t *truth) takeBack(d *deed) {
	for key, x := range t.things {
		if x.made == d {
			delete(t.things, key)
		}
		x.gone = slices.DeleteFunc(x.gone, func(by *deed) bool { return by == d })
		for name, all := range x.fields {
			x.fields[name] = slices.DeleteFunc(all, func(e entry) bool { return e.by == d })
		}
	}
}

// hold notes who has an act on its disk, as the answer says: of those that its node saw all the time, whom it does not name.
func hold(d *deed, before, after node.Status, late []string) {
	for _, o := range before.Peers {
		stays := slices.ContainsFunc(after.Peers, func(x node.PeerStatus) bool { return x.Node == o.Node && x.State == "alive" })
		if o.State != "alive" || !stays || slices.Contains(late, o.Name) || slices.Contains(late, o.Node) {
			continue
		}
		if id, err := crdt.ParseNodeID(o.Node); err == nil {
			d.holders[id] = true
		}
	}
}

// another returns a number that nobody has.
func (r *real) another() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids++
	return r.ids
}

// plan returns what is to be sent for a step, with what the node shows.
func (r *real) plan(p *process, s Step) (*request, error) {
	q := &request{method: http.MethodPatch}
	switch s.Do {
	case ChangeZone:
		q.path = "/api/v1/zones/" + zones[s.Thing%len(zones)]
		var z item
		if _, _, err := r.send(p, http.MethodGet, q.path, nil, &z); err != nil {
			return nil, err
		}
		was, _ := z["search_engine_crawler_bypass"].(bool)
		q.patch("zone", z, item{"search_engine_crawler_bypass": !was})
		return q, nil
	case MakeRoom:
		n := r.another()
		i := item{
			"name": fmt.Sprint("room-", n), "host": fmt.Sprintf("room-%d.example", n), "zone": zones[s.Thing%len(zones)],
			"total_active_users": 500, "new_users_per_minute": 500,
		}
		q.method, q.path, q.body = http.MethodPost, "/api/v1/rooms", i
		q.makes("room", "", i, item{"suspended": false, "queue_all": false, "description": "", "message": "", "custom_page_html": "", "session_duration": 5})
		q.sets(i.key("room"), map[string]string{ordered: ""})
		return q, nil
	case MakeLimit, ChangeLimit, MoveLimit, DropLimit:
		all, err := r.list(p, "/api/v1/rate_limits")
		if err != nil {
			return nil, err
		}
		return q, r.planLimit(q, all, s)
	}
	rooms, err := r.list(p, "/api/v1/rooms")
	if err != nil || len(rooms) == 0 {
		return nil, errNothing
	}
	room := rooms[s.Thing%len(rooms)]
	q.path = "/api/v1/rooms/" + room["id"].(string)
	switch s.Do {
	case DropRoom:
		q.method = http.MethodDelete
		q.drops(room.key("room"))
		return q, nil
	case ChangeRoom, GivePage:
		q.patch("room", room, changeOfRoom(room, s))
		return q, nil
	case MakeEvent, ChangeEvent, DropEvent:
		all, err := r.list(p, q.path+"/events")
		if err != nil {
			return nil, err
		}
		return q, r.planEvent(q, room, all, s)
	}
	all, err := r.list(p, q.path+"/rules")
	if err != nil {
		return nil, err
	}
	return q, r.planRule(q, room, all, s)
}

// patch has a request change fields of a thing.
func (q *request) patch(kind string, was, to item) {
	q.body = to
	fields := map[string]string{}
	for name := range to {
		fields[name] = to.text(name)
	}
	q.sets(was.key(kind), fields)
}

func changeOfRoom(room item, s Step) item {
	v := s.Value
	toggled := func(field string) item {
		was, _ := room[field].(bool)
		return item{field: !was}
	}
	switch {
	case s.Do == GivePage:
		return item{"custom_page_html": page(v)}
	case v%8 == 0:
		return item{"total_active_users": 1000 + v}
	case v%8 == 1:
		return item{"new_users_per_minute": 1000 + v}
	case v%8 == 2:
		return toggled("suspended")
	case v%8 == 3:
		return toggled("queue_all")
	case v%8 == 4:
		return item{"description": fmt.Sprint("text ", v)}
	case v%8 == 5:
		return item{"message": fmt.Sprint("message ", v)}
	case v%8 == 6:
		return item{"custom_page_html": ""}
	}
	return item{"session_duration": 5 + v%20}
}

func (r *real) planEvent(q *request, room item, all []item, s Step) error {
	if s.Do == MakeEvent {
		n := r.another()
		start := time.Now().Add(24 * time.Hour * time.Duration(1+n)).Truncate(time.Second).UTC()
		i := item{"name": fmt.Sprint("event-", n), "event_start_time": start.Format(time.RFC3339), "event_end_time": start.Add(time.Hour).Format(time.RFC3339)}
		q.method, q.path, q.body = http.MethodPost, q.path+"/events", i
		q.makes("event", room.key("room"), i, item{"suspended": false, "description": "", "custom_page_html": nil})
		return nil
	}
	if len(all) == 0 {
		return errNothing
	}
	x := all[s.Node%len(all)]
	q.path += "/events/" + x["id"].(string)
	was, _ := x["suspended"].(bool)
	switch {
	case s.Do == DropEvent:
		q.method = http.MethodDelete
		q.drops(x.key("event"))
	case s.Value%3 == 0:
		q.patch("event", x, item{"suspended": !was})
	case s.Value%3 == 1:
		q.patch("event", x, item{"description": fmt.Sprint("text ", s.Value)})
	default:
		q.patch("event", x, item{"custom_page_html": page(s.Value)})
	}
	return nil
}

func (r *real) planRule(q *request, room item, all []item, s Step) error {
	path := q.path + "/rules"
	made := func() item {
		i := item{"expression": fmt.Sprintf(`http.request.uri.path eq "/%d"`, r.another()), "description": "", "enabled": true}
		q.makes("rule", room.key("room"), i, item{})
		return i
	}
	becomes := func(all []item) { q.sets(room.key("room"), order("rule", all)) }
	switch s.Do {
	case MakeRule:
		i := made()
		q.method, q.path, q.body = http.MethodPost, path, i
		becomes(append(all, i))
		return nil
	case ReplaceRules:
		for _, x := range all {
			q.drops(x.key("rule"))
		}
		is := []item{made(), made()}
		q.method, q.path, q.body = http.MethodPut, path, is
		becomes(is)
		return nil
	}
	if len(all) == 0 {
		return errNothing
	}
	at := s.Node % len(all)
	x := all[at]
	q.path = path + "/" + x["id"].(string)
	enabled, _ := x["enabled"].(bool)
	switch {
	case s.Do == DropRule:
		q.method = http.MethodDelete
		q.drops(x.key("rule"))
		becomes(slices.Delete(all, at, at+1))
	case s.Do == MoveRule:
		q.body = item{"position": item{"index": s.Value%len(all) + 1}}
		if err := move(all, at, s.Value); err != nil {
			return err
		}
		becomes(all)
	case s.Value%2 == 0:
		q.patch("rule", x, item{"enabled": !enabled})
	default:
		q.patch("rule", x, item{"description": fmt.Sprint("text ", s.Value)})
	}
	return nil
}

func (r *real) planLimit(q *request, all []item, s Step) error {
	const path = "/api/v1/rate_limits"
	if s.Do == MakeLimit {
		i := item{"name": fmt.Sprint("limit-", r.another()), "expression": "true", "period": 60, "requests_per_period": 100}
		q.method, q.path, q.body = http.MethodPost, path, i
		q.makes("limit", "", i, item{"enabled": true, "description": "", "content": ""})
		q.sets(allLimits, order("limit", append(all, i)))
		return nil
	}
	if len(all) == 0 {
		return errNothing
	}
	at, v := s.Thing%len(all), s.Value
	x := all[at]
	q.path = path + "/" + x["id"].(string)
	enabled, _ := x["enabled"].(bool)
	switch {
	case s.Do == DropLimit:
		q.method = http.MethodDelete
		q.drops(x.key("limit"))
		q.sets(allLimits, order("limit", slices.Delete(all, at, at+1)))
	case s.Do == MoveLimit:
		q.body = item{"position": item{"index": v%len(all) + 1}}
		if err := move(all, at, v); err != nil {
			return err
		}
		q.sets(allLimits, order("limit", all))
	case v%4 == 0:
		q.patch("limit", x, item{"requests_per_period": v})
	case v%4 == 1:
		q.patch("limit", x, item{"enabled": !enabled})
	case v%4 == 2:
		q.patch("limit", x, item{"description": fmt.Sprint("text ", v)})
	default:
		q.patch("limit", x, item{"content": page(v)})
	}
	return nil
}
