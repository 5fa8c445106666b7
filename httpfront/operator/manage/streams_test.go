package manage

import (
	"encoding/json"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/admin/admintest"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
)

// TestStreamsAreInTheDocument, and what they tell is as it says.
func TestStreamsAreInTheDocument(t *testing.T) {
	routes, schemas := Routes(&fakeMesh{}, time.Now)
	others, more := Streams()
	maps.Copy(schemas, more)
	api, err := admin.New(admin.Config{Mesh: &admintest.Mesh{}, Routes: routes, Others: others, Schemas: schemas})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(api.Do(t.Context(), admin.Request{Method: "GET", Path: "/api/v1/openapi.json"}).Body)
	if err == nil {
		err = doc.Validate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for path, media := range map[string]string{"/api/v1/watch": "text/event-stream", "/api/v1/rooms/{room}/watch": "text/event-stream", "/api/v1/rooms/{room}/history": "application/json"} {
		item := doc.Paths.Value(path)
		if item == nil || item.Get == nil || item.Get.Responses.Status(200).Value.Content[media] == nil {
			t.Errorf("%s: %+v, want a GET that answers %s", path, item, media)
		}
		if _, ok := api.Route("GET", path); ok {
			t.Errorf("%s is answered here as well", path)
		}
	}
	for name, v := range map[string]any{
		"History":      dashboard.History{From: begin, Step: 60, Active: dashboard.Series{1, math.NaN()}},
		"Detail":       dashboard.Detail{Buckets: []dashboard.Bucket{}, Sites: []dashboard.SiteShare{}, Events: []dashboard.Event{}},
		"OtherRefusal": map[string]any{"errors": []any{map[string]any{"message": "x"}}},
	} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var is any
		if err := json.Unmarshal(b, &is); err != nil {
			t.Fatal(err)
		}
		if err := doc.Components.Schemas[name].Value.VisitJSON(is, openapi3.EnableFormatValidation()); err != nil {
			t.Errorf("%s: %s: %v", name, b, err)
		}
	}
}
