package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// documentPath is where the document about all of this is.
const documentPath = ownPath + "openapi.json"

func (a *API) documentRoute() Route {
	return Route{
		Method: http.MethodGet, Path: documentPath, Scope: Read, ID: "getDocument", Tag: "document", Summary: "This document.", Answer: Schema{"type": "object"},
		Handle: func(context.Context, *Call) (Answer, error) {
			return Answer{Raw: &Response{Status: http.StatusOK, ContentType: "application/json", Body: a.document}}, nil
		},
	}
}

// commonSchemas are those that have names, made of the tables of fields.
var commonSchemas = sync.OnceValue(func() map[string]Schema {
	count := Schema{"type": "integer", "minimum": 0}
	words := Schema{"type": "string"}
	mistakes := listOf(Ref("Mistake"))
	return map[string]Schema{
		"Room": objectOf(roomFields(), shown), "RoomNew": objectOf(roomFields(), created), "RoomChange": objectOf(roomFields(), changed),
		"Event": objectOf(eventFields, shown), "EventNew": objectOf(eventFields, created), "EventChange": objectOf(eventFields, changed),
		"Rule": objectOf(ruleFields, shown), "RuleListed": objectOf(ruleFields, created),
		"RuleNew": objectOf(ruleList.placed, created), "RuleChange": objectOf(ruleList.placed, changed),
		"RateLimit": objectOf(rateLimitFields, shown), "RateLimitListed": objectOf(rateLimitFields, created), "RateLimitNew": objectOf(limitList.placed, created), "RateLimitChange": objectOf(limitList.placed, changed),
		"ZoneSettings": objectOf(zoneFields, shown), "ZoneSettingsChange": objectOf(zoneFields, changed),
		"Zone":       object(map[string]Schema{"zone": zoneName, "rooms": count, zoneFields[0].name: {"type": "boolean"}}),
		"ZoneChange": objectOf(ownZoneFields, changed),
		"PreviewNew": objectOf(previewFields, created),
		"Preview":    object(map[string]Schema{"preview_url": words}),
		"Deleted":    object(map[string]Schema{"id": words}),
		"Status": object(map[string]Schema{
			"status":                 {"type": "string", "enum": []any{"not_queueing", "queueing", "event_prequeueing", "suspended"}},
			"event_id":               {"type": "string", "description": "The event that is under way or in its pre-queue; empty if there is none."},
			"estimated_queued_users": count, "estimated_total_active_users": count,
			"max_estimated_time_minutes": {"type": []string{"integer", "null"}, "minimum": 0, "description": "How long who comes now is expected to wait at most; null if nobody can tell."},
			"served":                     {"type": "boolean", "description": "Whether this node runs the room. If not, the figures are nought."},
		}),
		"Page": object(map[string]Schema{"page": count, "per_page": count, "count": count, "total_count": count, "total_pages": count}),
		"Mistake": {"type": "object", "required": []string{"code", "message"}, "properties": map[string]Schema{
			"code": {"type": "integer"}, "message": words,
			"field":   {"type": "string", "description": "As the request spells it."},
			"value":   {"type": "string", "description": "What was given, perhaps shortened."},
			"allowed": {"type": "string", "description": "What would be accepted."},
		}},
		"Refusal": object(map[string]Schema{"errors": mistakes}),
		"OtherRefusal": object(map[string]Schema{"errors": listOf(Schema{"type": "object", "required": []string{"message"}, "properties": map[string]Schema{
			"message": words, "field": words, "value": words, "allowed": words,
		}})}),
		"V4Refusal": object(map[string]Schema{
			"success": {"type": "boolean", "const": false}, "errors": mistakes, "messages": mistakes, "result": {"type": "null"},
		}),
	}
})

// makeDocument writes the OpenAPI document.
func (a *API) makeDocument() ([]byte, error) {
	paths := map[string]map[string]any{}
	add := func(r *Route, refusal string) {
		if paths[r.Path] == nil {
			paths[r.Path] = map[string]any{}
		}
		paths[r.Path][strings.ToLower(r.Method)] = r.operation(refusal)
	}
	for i := range a.routes {
		r := &a.routes[i]
		add(r, map[bool]string{true: "V4Refusal", false: "Refusal"}[strings.HasPrefix(r.Path, dialectPath)])
	}
	for i := range a.cfg.Others {
		add(&a.cfg.Others[i], "OtherRefusal")
	}
	b, err := json.Marshal(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "ropeline: administration", "version": cmp.Or(a.cfg.Version, "unreleased"),
			"description": "Rooms and what belongs to them, in the dialect of a hosted waiting room (/client/v4) and in a plainer one (/api/v1).",
			"license":     map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers": []any{map[string]any{"url": "/"}},
		"paths":   paths,
		"components": map[string]any{
			"schemas":         a.schemas(),
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("admin: document: %w", err)
	}
	return append(b, '\n'), nil
}

// pathParams says what the parameters of paths are that many routes have.
var pathParams = map[string]Parameter{
	"zone":    {"zone", "A name space of rooms; one that nobody has used is empty.", zoneName},
	"account": {"account", "Any text.", nil},
	"room":    {"room", "The id of a room. Below " + ownPath + " its name as well, where that is unique.", nil},
	"event":   {"event", "The id of an event.", nil},
	"rule":    {"rule", "The id of a rule.", nil},
	"limit":   {"limit", "The id of a rate limit, or its name where that is unique.", nil},
}

func (r *Route) operation(refusal string) map[string]any {
	op := map[string]any{
		"operationId": r.ID, "summary": r.Summary, "tags": []string{r.Tag},
		"security":  []any{map[string]any{"token": []string{r.Scope.String()}}},
		"responses": r.responses(refusal),
	}
	if params := r.parameters(); len(params) > 0 {
		op["parameters"] = params
	}
	if r.Body != nil {
		op["requestBody"] = map[string]any{"required": true, "content": content("", r.Body)}
	}
	return op
}

func (r *Route) parameters() (all []any) {
	add := func(p Parameter, in string) {
		if p.Schema == nil {
			p.Schema = Schema{"type": "string"}
		}
		all = append(all, map[string]any{"name": p.Name, "in": in, "required": in == "path", "description": p.Meaning, "schema": p.Schema})
	}
	for segment := range strings.SplitSeq(r.Path, "/") {
		name, isParam := strings.CutPrefix(segment, "{")
		if !isParam {
			continue
		}
		p := Parameter{Name: strings.TrimSuffix(name, "}")}
		if known, ok := pathParams[p.Name]; ok {
			p = known
		}
		for _, own := range r.Params {
			if own.Name == p.Name {
				p = own
			}
		}
		add(p, "path")
	}
	for _, p := range r.Query {
		add(p, "query")
	}
	return all
}

// responses has what around the answer each way of speaking puts.
func (r *Route) responses(refusal string) map[string]any {
	s := r.Answer
	switch {
	case strings.HasPrefix(r.Path, dialectPath):
		if r.List {
			s = listOf(s)
		}
		s = object(map[string]Schema{
			"success": {"type": "boolean", "const": true}, "errors": listOf(Ref("Mistake")).with("maxItems", 0), "messages": listOf(Ref("Mistake")), "result": s,
		})
		if r.List {
			s["properties"].(map[string]Schema)["result_info"] = Ref("Page")
		}
	case r.List:
		s = object(map[string]Schema{"items": listOf(s)})
		s["properties"].(map[string]Schema)["result_info"] = Ref("Page")
	}
	return map[string]any{
		"200":     map[string]any{"description": "It is as the request says.", "content": content(r.Media, s)},
		"default": map[string]any{"description": "Why it is not. Nothing was changed.", "content": content("", Ref(refusal))},
	}
}

func content(media string, s Schema) map[string]any {
	return map[string]any{cmp.Or(media, "application/json"): map[string]any{"schema": s}}
}
