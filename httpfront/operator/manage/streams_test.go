package manage

import (
	"math"
	"testing"

	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
)

// TestStreamsAreInTheDocument, and what they tell is as it says.
func TestStreamsAreInTheDocument(t *testing.T) {
	b := newBench(t)
	doc := b.document()
	for path, media := range map[string]string{"/api/v1/watch": "text/event-stream", "/api/v1/rooms/{room}/watch": "text/event-stream", "/api/v1/rooms/{room}/history": "application/json"} {
		item := doc.Paths.Value(path)
		if item == nil || item.Get == nil || item.Get.Responses.Status(200).Value.Content[media] == nil {
			t.Errorf("%s: %+v, want a GET that answers %s", path, item, media)
		}
		if _, ok := b.api.Route("GET", path); ok {
			t.Errorf("%s is answered here as well", path)
		}
	}
	for name, v := range map[string]any{
		"History":      dashboard.History{From: begin, Step: 60, Active: dashboard.Series{1, math.NaN()}},
		"Detail":       dashboard.Detail{Buckets: []dashboard.Bucket{}, Sites: []dashboard.SiteShare{}, Events: []dashboard.Event{}},
		"OtherRefusal": map[string]any{"errors": []any{map[string]any{"message": "x"}}},
	} {
		b.wantValid(name, doc.Components.Schemas[name], v)
	}
}
