package manage

import (
	"net/http"
	"reflect"

	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
)

// Streams returns what package dashboard answers below the same path, for the document, and
// the schemas for it.
func Streams() ([]admin.Route, map[string]admin.Schema) {
	get := func(path, id, summary, media string, answer admin.Schema) admin.Route {
		return admin.Route{
			Method: http.MethodGet, Path: "/api/v1/" + path, Scope: admin.Read, ID: id, Tag: "dashboard", Summary: summary, Media: media, Answer: answer,
			Params: []admin.Parameter{{Name: "room", Meaning: "The id of a room."}},
		}
	}
	const stream = "text/event-stream"
	events := func(of string) admin.Schema {
		return admin.Schema{"type": "string", "description": "Events of the kinds snapshot, which has all of it (" + of + "), delta, revoked and gone."}
	}
	history := get("rooms/{room}/history", "getHistory", "Shows how a room was, as the dashboard draws it.", "", admin.Ref("History"))
	moment := admin.Schema{"type": "string", "format": "date-time"}
	history.Query = []admin.Parameter{
		{Name: "from", Meaning: "Since when. It has to be there.", Schema: moment},
		{Name: "to", Meaning: "Until when. It has to be there.", Schema: moment},
		{Name: "step", Meaning: "How many seconds a step is. It has to be there.", Schema: admin.Schema{"type": "integer", "minimum": 1}},
	}
	numbers := admin.Schema{"type": "array", "items": admin.Schema{"type": []string{"number", "null"}}}
	shown := schemaOf(reflect.TypeFor[dashboard.History]())
	for name, s := range shown["properties"].(map[string]admin.Schema) {
		if s["type"] == "array" {
			shown["properties"].(map[string]admin.Schema)[name] = numbers // what is not known is null
		}
	}
	return []admin.Route{
		get("watch", "watchMesh", "Tells of the mesh, and of what changes in it.", stream, events("as of getMesh")),
		get("rooms/{room}/watch", "watchRoom", "Tells of a room in detail, and of what changes in it.", stream, events("Detail")),
		history,
	}, map[string]admin.Schema{"History": shown, "Detail": schemaOf(reflect.TypeFor[dashboard.Detail]())}
}
