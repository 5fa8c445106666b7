package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
)

// document returns the OpenAPI document that is served.
func (b *bench) document() *openapi3.T {
	b.Helper()
	doc := must.Do(openapi3.NewLoader().LoadFromData(b.send("GET", "/api/v1/openapi.json", nil).Body))
	if err := doc.Validate(b.Context()); err != nil || doc.OpenAPI != "3.1.0" {
		b.Fatalf("the document is of version %s: %v", doc.OpenAPI, err)
	}
	return doc
}

// bodies are what each route is sent, by the id of its operation here; all others have no
// body.
func bodies() map[string]any {
	event := plus(newEvent("spring", 3), "prequeue_start_time", begin.AddDate(0, 0, 3).Add(-time.Hour), "total_active_users", 5, "new_users_per_minute", 5, "description", nil)
	return map[string]any{
		"createRoom": plus(everything("made"), "policy", nil), "replaceRoom": everything("shop"), "changeRoom": tree{"queue_all": true, "session_duration": nil},
		"preview": tree{"custom_html": "<p>wait"}, "createEvent": event, "replaceEvent": event, "changeEvent": tree{"suspended": true, "queueing_method": nil},
		"createRule": plus(newRule("a"), "position", tree{"index": 1}), "replaceRules": []tree{newRule("a"), newRule("b")}, "changeRule": tree{"enabled": false, "position": tree{"after": ""}},
		"createRateLimit": plus(newRateLimit("a"), "position", tree{"index": 1}), "replaceRateLimit": newRateLimit("limit"), "replaceRateLimits": []tree{newRateLimit("limit"), newRateLimit("b")}, "changeRateLimit": tree{"enabled": false, "position": tree{"after": ""}},
		"replaceZone": tree{"search_engine_crawler_bypass": true}, "changeZone": tree{},
	}
}

// TestEveryRouteIsAsDocumented sends a request to each, and holds both it and the answer
// against the document; and one that is refused. Answers have no more than is documented,
// since SDKs made from the document know every field.
func TestEveryRouteIsAsDocumented(t *testing.T) {
	all, doc := bodies(), newBench(t).document()
	for _, s := range doc.Components.Schemas {
		if len(s.Value.Properties) > 0 {
			s.Value.AdditionalProperties.Has = new(false)
		}
	}
	for _, route := range newBench(t).api.Routes() {
		t.Run(route.ID, func(t *testing.T) {
			b := newBench(t)
			at := b.add(rooms, plus(everything("shop"), "custom_page_html", ""))
			path := strings.NewReplacer("{zone}", "shop", "{account}", "any", "{room}", last(at),
				"{event}", last(b.add(at+"/events", newEvent("sale", 1))),
				"{limit}", last(b.add(rateLimits, newRateLimit("limit"))),
				"{rule}", b.list("POST", at+"/rules", newRule("x"))[0]["id"].(string)).Replace(route.Path)
			if found, ok := b.api.Route(route.Method, path); !ok || found.ID != route.ID {
				t.Errorf("%s %s leads to %v", route.Method, path, found)
			}
			op := doc.Paths.Value(route.Path).GetOperation(route.Method)
			is(t, "the operation", op.OperationID, route.ID)
			is(t, "it has a summary", op.Summary != "", true)
			is(t, "its scopes", (*op.Security)[0]["token"], []string{route.Scope.String()})
			is(t, "it writes", route.Scope == admin.Write, route.Method != "GET")
			id := strings.TrimPrefix(route.ID, "v4")
			body, there := all[strings.ToLower(id[:1])+id[1:]]
			if there != (route.Body != nil) {
				t.Fatalf("there is no body for it to be tested with")
			}
			if err := b.compare(doc, route, path, body, 200); err != nil {
				t.Error(err)
			}
			if route.Body == nil {
				return
			}
			if err := b.compare(doc, route, path, tree{"nonsense": 1}, 400); err == nil {
				t.Error("the document takes nonsense")
			}
		})
	}
}

// last is the last segment of a path.
func last(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// compare sends a request, fails where it is answered otherwise than documented, and returns what is wrong with its body.
func (b *bench) compare(doc *openapi3.T, route admin.Route, path string, body any, status int) error {
	b.Helper()
	op := doc.Paths.Value(route.Path).GetOperation(route.Method)
	resp := b.send(route.Method, path, body)
	answer := op.Responses.Default()
	if resp.Status == 200 {
		answer = op.Responses.Status(200)
	}
	media := answer.Value.Content[resp.ContentType]
	if resp.Status != status || media == nil {
		b.Fatalf("%s %s: status %d, %s, want %d: %s", route.Method, path, resp.Status, resp.ContentType, status, resp.Body)
	}
	if err := valid(media, resp.Body); err != nil {
		b.Errorf("%s %s: the answer: %v\n%s", route.Method, path, err, resp.Body)
	}
	if body == nil {
		return nil
	}
	return valid(op.RequestBody.Value.Content["application/json"], must.Do(json.Marshal(body)))
}

// valid returns what of a text is not as documented.
func valid(media *openapi3.MediaType, text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	return media.Schema.Value.VisitJSON(v, openapi3.EnableJSONSchema2020(), openapi3.EnableFormatValidation())
}

// TestRoutesOfOthers are served and documented like those of rooms.
func TestRoutesOfOthers(t *testing.T) {
	nodes := admin.Route{
		Method: "GET", Path: "/api/v1/nodes/{node}", Scope: admin.Read, ID: "getNode", Summary: "Shows a node.", Tag: "nodes", Answer: admin.Ref("Node"),
		Params: []admin.Parameter{{Name: "node", Meaning: "The id of a node."}},
		Handle: func(_ context.Context, c *admin.Call) (admin.Answer, error) {
			if c.Param("node") != "n 1" {
				return admin.Answer{}, admin.Refuse(404, 1999, "there is no node %q", c.Param("node"))
			}
			return admin.Answer{Result: map[string]string{"name": "n1"}}, nil
		},
	}
	b := newBench(t)
	cfg := admin.Config{Mesh: b.mesh, Routes: []admin.Route{nodes}, Schemas: map[string]admin.Schema{
		"Node": {"type": "object", "properties": map[string]admin.Schema{"name": {"type": "string"}}},
	}}
	b.api = must.Do(admin.New(cfg))
	is(t, "it answered", b.want("GET", "/api/v1/nodes/n%201", nil), tree{"name": "n1"})
	b.refuses(404, "GET", "/api/v1/nodes/n2", nil)
	if b.document().Paths.Value(nodes.Path) == nil {
		t.Error("the document has not got it")
	}
	cfg.Routes = append(cfg.Routes, nodes)
	if _, err := admin.New(cfg); err == nil {
		t.Error("the same route was taken twice")
	}
}

func apiPage() string {
	return string(must.Do(os.ReadFile("../../../docs/api.md")))
}

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// TestExamplesOfThePage are sent one after the other.
func TestExamplesOfThePage(t *testing.T) {
	b := newBench(t)
	sent := 0
	var answer tree
	for _, m := range fence.FindAllStringSubmatch(apiPage(), -1) {
		switch kind, text := m[1], m[2]; kind {
		case "http":
			head, body, _ := strings.Cut(text, "\n")
			head, status, refused := strings.Cut(head, "# ")
			if !refused {
				status = "200"
			}
			fields := strings.Fields(head)
			var sends any
			if body = strings.TrimSpace(body); body != "" {
				sends = body
			}
			var got int
			if got, answer = b.ask(fields[0], fields[1], sends); fmt.Sprint(got) != strings.TrimSpace(status) {
				t.Errorf("%s\nis answered %d: %v", text, got, answer)
			}
			sent++
		case "json":
			var shown tree
			if err := json.Unmarshal([]byte(text), &shown); err != nil || !reflect.DeepEqual(shown, answer) {
				t.Errorf("the page shows\n%s\nand the answer is\n%v (%v)", text, answer, err)
			}
		}
	}
	if sent < 5 {
		t.Errorf("only %d examples were found", sent)
	}
}

// TestThePageHasEverything: fields, routes and codes.
func TestThePageHasEverything(t *testing.T) {
	b := newBench(t)
	text := apiPage()
	has := func(part string) {
		t.Helper()
		if !strings.Contains(text, part) {
			t.Errorf("it has no %s", part)
		}
	}
	doc := b.document()
	for _, o := range objects {
		for name := range fieldsOf(doc.Components.Schemas[o.schema].Value, "") {
			has("`" + name[strings.LastIndex(name, ".")+1:] + "`")
		}
	}
	for _, r := range b.api.Routes() {
		has(strings.TrimPrefix(strings.TrimPrefix(r.Path, "/client/v4/zones/{zone}/waiting_rooms"), "/api/v1/rooms") + "`")
	}
	codes := regexp.MustCompile(`(?m)^\tCode\w+\s*= (\d+)`).FindAllStringSubmatch(string(must.Do(os.ReadFile("mistake.go"))), -1)
	for _, code := range codes {
		if !regexp.MustCompile(`(?m)^\| [\d, ]+ \|.*\b` + code[1] + `\b`).MatchString(text) {
			t.Errorf("it has no code %s", code[1])
		}
	}
	if len(codes) < 10 {
		t.Errorf("only %d codes were found", len(codes))
	}
}
