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
	get := func(path, id, summary, of string) admin.Route {
		return admin.Route{
			Method: http.MethodGet, Path: "/api/v1/" + path, Scope: admin.Read, ID: id, Tag: "dashboard", Summary: summary, Media: "text/event-stream",
			Answer: admin.Schema{"type": "string", "description": "Events of the kinds snapshot, which has all of it (" + of + "), delta, revoked and gone."},
			Params: []admin.Parameter{{Name: "room", Meaning: "The id of a room."}},
		}
	}
	return []admin.Route{
		get("watch", "watchMesh", "Tells of the mesh, and of what changes in it.", "as of getMesh"),
		get("rooms/{room}/watch", "watchRoom", "Tells of a room in detail, and of what changes in it.", "Detail"),
	}, map[string]admin.Schema{"Detail": schemaOf(reflect.TypeFor[dashboard.Detail]())}
}
