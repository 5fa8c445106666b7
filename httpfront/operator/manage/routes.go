package manage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/node"
)

// Codes of mistakes, beside those of package admin.
const (
	CodeNoNode    = 1401 // there is no such node
	CodeNoVisitor = 1402 // no node knows the visitor
	CodeAlive     = 1403 // the node that was declared dead is alive
	CodeUnsure    = 1404 // what cannot be undone has to be confirmed
	CodeNotNow    = 1405 // it cannot be done as things are
)

// manager answers the routes.
type manager struct {
	mesh Mesh
	now  func() time.Time
}

// RightsOf is who has the rights of a room.
type RightsOf struct {
	Room    string        `json:"room"` // id
	Ledgers []node.Ledger `json:"ledgers"`
	Missing []string      `json:"missing"` // names of nodes that did not say what they have
}

// DrainOrder is how a node is stopped.
type DrainOrder struct {
	// Leave has its rights go to another node first. It is not to be started again then.
	Leave bool `json:"leave,omitempty"`
}

// DeathOrder confirms that a node is gone.
type DeathOrder struct {
	// GoneForGood has to be true: a node that is declared dead and runs breaks the limit.
	GoneForGood bool `json:"gone_for_good"`
}

// Question is a visitor or a request to be explained.
type Question struct {
	Visitor string   `json:"visitor,omitempty"` // id, beside Room; instead of Request
	Room    string   `json:"room,omitempty"`    // id
	Request *Request `json:"request,omitempty"`
}

// Request is a request of a visitor.
type Request struct {
	Method  string            `json:"method,omitempty"` // default GET
	Host    string            `json:"host"`
	Target  string            `json:"target,omitempty"`  // path and query; default /
	Secure  bool              `json:"secure,omitempty"`  // over TLS
	Address string            `json:"address,omitempty"` // the visitor's; default 192.0.2.1
	Header  map[string]string `json:"header,omitempty"`  // Cookie among it
}

// Explanation is the answer: of a visitor, Decided; of a request, all the rest as well.
type Explanation struct {
	Visitor *node.Explanation    `json:"visitor,omitempty"`
	Request *httpfront.Explained `json:"request,omitempty"`
}

// Done is the answer where hardly anything is to be said.
type Done struct {
	Node    string `json:"node"`              // id
	Warning string `json:"warning,omitempty"` // what else is to be done, and why
}

// Routes returns what package admin is to answer beside rooms, and the schemas for it.
func Routes(mesh Mesh, now func() time.Time) ([]admin.Route, map[string]admin.Schema) {
	m := &manager{mesh, now}
	get := func(id, path, tag, summary, answer string, list bool, h admin.Handler) admin.Route {
		return admin.Route{Method: http.MethodGet, Path: "/api/v1/" + path, Scope: admin.Read, ID: id, Tag: tag, Summary: summary, Answer: admin.Ref(answer), List: list, Handle: h}
	}
	post := func(id, path, tag, summary, body, answer string, scope admin.Scope, h admin.Handler) admin.Route {
		return admin.Route{Method: http.MethodPost, Path: "/api/v1/" + path, Scope: scope, ID: id, Tag: tag, Summary: summary, Body: admin.Ref(body), Answer: admin.Ref(answer), Handle: h}
	}
	routes := []admin.Route{
		get("getNodeStatus", "status", "mesh", "Shows what this node sees.", "NodeStatus", false, m.status),
		get("getMesh", "mesh", "mesh", "Shows the whole mesh: rooms, sites, nodes with their round-trip times, and rate limits.", "Mesh", false, m.snapshot),
		get("listNodes", "nodes", "mesh", "Lists the nodes of the mesh, this one first.", "Node", true, m.nodes),
		get("getNode", "nodes/{node}", "mesh", "Shows a node, by its id or its name.", "Node", false, m.node),
		get("listSites", "sites", "mesh", "Lists the sites of the mesh.", "Site", true, m.sites),
		get("getRights", "rooms/{room}/rights", "rights", "Shows who has the rights of a room, who the counters are, and what went from node to node.", "Rights", false, m.rights),
		get("getAnalytics", "rooms/{room}/analytics", "rooms", "Shows how a room was during the last day, in steps: who was active and waited, how many came and were let in, how long they waited and stayed.", "Analytics", false, m.analytics),
		get("listKeys", "keys", "keys", "Lists the secrets of the mesh by their ids, the newest first.", "Key", true, m.keys),
		post("rotateKeys", "keys/rotation", "keys", "Has a new secret take the place of the one that is used. Certificates, passes and proofs follow it once all nodes have it.", "Nothing", "Rotation", admin.Write, m.rotate),
		post("drainNode", "nodes/{node}/drain", "mesh", "Stops a node in order: balancers are told, visitors are served until drain-delay is over.", "DrainOrder", "Done", admin.Write, m.drain),
		post("declareDead", "nodes/{node}/declare_dead", "rights", "Declares a node dead that is gone for good with its data directory; the others recover its capacity. The answer says when they can use it.", "DeathOrder", "Recovery", admin.Write, m.declareDead),
		get("getRecovery", "nodes/{node}/recovery", "rights", "Shows how far the capacity of a node is that was declared dead.", "Recovery", false, m.recovery),
		post("explain", "explain", "explain", "Says why a visitor is let in, or is not, or what would become of a request. Nothing is changed by it.", "Question", "Explanation", admin.Read, m.explain),
	}
	for i := range routes {
		if strings.Contains(routes[i].Path, "/rooms/{room}") {
			routes[i].Query = []admin.Parameter{{Name: "zone", Meaning: "The zone of the room, where several have one of that name."}}
		}
		if routes[i].ID == "getAnalytics" {
			routes[i].Query = append(routes[i].Query, analyticsQuery()...)
		}
		if strings.Contains(routes[i].Path, "{node}") {
			routes[i].Params = []admin.Parameter{{Name: "node", Meaning: "The node, by its id or its name."}}
		}
	}
	return routes, map[string]admin.Schema{
		"NodeStatus": schemaOf(reflect.TypeFor[node.Status]()), "Mesh": schemaOf(reflect.TypeFor[dashboard.Snapshot]()),
		"Node": schemaOf(reflect.TypeFor[dashboard.Node]()), "Site": schemaOf(reflect.TypeFor[dashboard.Site]()),
		"Rights": schemaOf(reflect.TypeFor[RightsOf]()), "Key": schemaOf(reflect.TypeFor[Key]()), "Rotation": schemaOf(reflect.TypeFor[Rotation]()),
		"DrainOrder": schemaOf(reflect.TypeFor[DrainOrder]()), "DeathOrder": schemaOf(reflect.TypeFor[DeathOrder]()), "Recovery": schemaOf(reflect.TypeFor[Recovery]()), "Done": schemaOf(reflect.TypeFor[Done]()),
		"Analytics": analyticsSchema(),
		"Question":  schemaOf(reflect.TypeFor[Question]()), "Explanation": schemaOf(reflect.TypeFor[Explanation]()),
		"Nothing": {"type": "object", "properties": map[string]admin.Schema{}, "additionalProperties": false},
	}
}

func (m *manager) status(context.Context, *admin.Call) (admin.Answer, error) {
	return admin.Answer{Result: m.mesh.Status()}, nil
}

func (m *manager) snapshot(context.Context, *admin.Call) (admin.Answer, error) {
	return admin.Answer{Result: m.mesh.Snapshot(m.now())}, nil
}

func (m *manager) nodes(context.Context, *admin.Call) (admin.Answer, error) {
	return admin.Answer{Result: m.mesh.Snapshot(m.now()).Nodes, List: true}, nil
}

func (m *manager) sites(context.Context, *admin.Call) (admin.Answer, error) {
	return admin.Answer{Result: m.mesh.Snapshot(m.now()).Sites, List: true}, nil
}

func (m *manager) node(_ context.Context, c *admin.Call) (admin.Answer, error) {
	n, err := m.find(c.Param("node"))
	return admin.Answer{Result: n}, err
}

// find returns the node of an id or a name. Of several with one name, such as a machine that was
// replaced and is still listed, the living one is meant.
func (m *manager) find(given string) (dashboard.Node, error) {
	found := m.called(given)
	if living := inState(found, "alive"); len(living) > 0 {
		found = living
	}
	switch len(found) {
	case 0:
		return dashboard.Node{}, admin.Refuse(http.StatusNotFound, CodeNoNode, "no node %q is known here; /api/v1/nodes lists those that are", given)
	case 1:
		return found[0], nil
	}
	var which []string
	for _, n := range found {
		which = append(which, n.Node+" ("+n.State+")")
	}
	return dashboard.Node{}, admin.Refuse(http.StatusConflict, CodeNoNode, "%d nodes are called %q; give the id of one: %s", len(found), given, strings.Join(which, ", "))
}

// called returns all nodes of an id or a name.
func (m *manager) called(given string) (found []dashboard.Node) {
	for _, n := range m.mesh.Snapshot(m.now()).Nodes {
		if n.Node == given || n.Name == given {
			found = append(found, n)
		}
	}
	return found
}

// inState returns those of a state: alive, failed or left.
func inState(all []dashboard.Node, state string) (in []dashboard.Node) {
	for _, n := range all {
		if n.State == state {
			in = append(in, n)
		}
	}
	return in
}

func (m *manager) rights(ctx context.Context, c *admin.Call) (admin.Answer, error) {
	r, err := c.Room()
	if err != nil {
		return admin.Answer{}, err
	}
	all, missing := m.mesh.Ledgers(ctx, r.Settings.ID)
	slices.SortFunc(all, func(a, b node.Ledger) int {
		return cmp.Or(strings.Compare(a.Site, b.Site), strings.Compare(a.Name, b.Name), strings.Compare(a.Node, b.Node))
	})
	return admin.Answer{Result: RightsOf{Room: r.Settings.ID.String(), Ledgers: append([]node.Ledger{}, all...), Missing: append([]string{}, missing...)}}, nil
}

func (m *manager) keys(context.Context, *admin.Call) (admin.Answer, error) {
	return admin.Answer{Result: append([]Key{}, m.mesh.Keys()...), List: true}, nil
}

func (m *manager) rotate(ctx context.Context, c *admin.Call) (admin.Answer, error) {
	if err := c.Decode(&struct{}{}); err != nil {
		return admin.Answer{}, err
	}
	r, err := m.mesh.RotateKeys(ctx)
	return admin.Answer{Result: r}, refusal(err)
}

func (m *manager) drain(ctx context.Context, c *admin.Call) (admin.Answer, error) {
	var order DrainOrder
	if err := c.Decode(&order); err != nil {
		return admin.Answer{}, err
	}
	n, err := m.find(c.Param("node"))
	if err != nil {
		return admin.Answer{}, err
	}
	id, err := crdt.ParseNodeID(n.Node)
	if err != nil {
		return admin.Answer{}, err
	}
	warning, err := m.mesh.Drain(ctx, id, order.Leave)
	return admin.Answer{Result: Done{n.Node, warning}}, refusal(err)
}

// refusal returns what an order is refused with; other errors as they are, which say that it
// may be given again.
func refusal(err error) error {
	switch {
	case errors.Is(err, ErrUnknownNode):
		return admin.Refuse(http.StatusNotFound, CodeNoNode, "%v", err)
	case errors.Is(err, ErrNotNow):
		return admin.Refuse(http.StatusConflict, CodeNotNow, "%v", err)
	}
	return err
}

func (m *manager) explain(ctx context.Context, c *admin.Call) (admin.Answer, error) {
	var q Question
	if err := c.Decode(&q); err != nil {
		return admin.Answer{}, err
	}
	switch {
	case q.Request != nil && q.Visitor == "" && q.Room == "":
		asked, err := q.Request.question()
		if err != nil {
			return admin.Answer{}, err
		}
		x := m.mesh.ExplainRequest(asked)
		return admin.Answer{Result: Explanation{Request: &x}}, nil
	case q.Request != nil || q.Visitor == "":
		return admin.Answer{}, admin.Wrong("request", "", "either a request, or a visitor with the room")
	}
	visitor, err := node.ParseVisitorID(q.Visitor)
	if err != nil {
		return admin.Answer{}, admin.Wrong("visitor", q.Visitor, "32 hexadecimal digits")
	}
	room, err := crdt.ParseRoomID(q.Room)
	if err != nil {
		return admin.Answer{}, admin.Wrong("room", q.Room, "the id of a room, 32 hexadecimal digits")
	}
	x, err := m.mesh.Explain(ctx, room, visitor)
	switch {
	case errors.Is(err, node.ErrUnknownVisitor), errors.Is(err, node.ErrUnknownRoom):
		return admin.Answer{}, admin.Refuse(http.StatusNotFound, CodeNoVisitor, "%v", err)
	case err != nil:
		return admin.Answer{}, err
	}
	return admin.Answer{Result: Explanation{Visitor: &x}}, nil
}

// headMax is how many bytes a request may have that is asked about: as many as one that a node reads.
// What it is held against takes time by its length.
const headMax = 16 << 10

// question returns the request as the front is asked about it.
func (r *Request) question() (*httpfront.Question, error) {
	q := &httpfront.Question{Method: cmp.Or(r.Method, http.MethodGet), Host: r.Host, Target: cmp.Or(r.Target, "/"), Peer: netip.AddrFrom4([4]byte{192, 0, 2, 1})}
	if !strings.HasPrefix(q.Target, "/") {
		return nil, admin.Wrong("request.target", r.Target, "a path with perhaps a query, such as /tickets?day=1")
	}
	if r.Secure {
		q.Scheme = "https"
	}
	if r.Address != "" {
		a, err := netip.ParseAddr(r.Address)
		if err != nil {
			return nil, admin.Wrong("request.address", r.Address, "an IP address")
		}
		q.Peer = a
	}
	bytes := len(r.Method) + len(r.Host) + len(r.Target)
	for name, value := range r.Header {
		bytes += len(name) + len(value)
	}
	if bytes > headMax {
		return nil, admin.Wrong("request", fmt.Sprintf("%d bytes", bytes), fmt.Sprintf("a request of at most %d bytes", headMax))
	}
	q.Fields = func(yield func(name, value string) bool) {
		for name, value := range r.Header {
			if !yield(name, value) {
				return
			}
		}
	}
	return q, nil
}
