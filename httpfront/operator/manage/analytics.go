package manage

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/node/history"
	"github.com/ropeline/ropeline/node/settings"
)

// What of a room's past is shown where nobody says it.
const (
	analyticsSpan = time.Hour
	analyticsStep = time.Minute
)

// MissingField is the header field of a table in which nodes stand that did not answer.
const MissingField = "Ropeline-Missing"

// Analytics is how a room was.
type Analytics struct {
	Room    string          `json:"room"` // id
	From    time.Time       `json:"from"`
	To      time.Time       `json:"to"` // which is not in it
	Step    float64         `json:"step_seconds"`
	Missing []string        `json:"missing"` // names of nodes that did not say what they know
	Points  json.RawMessage `json:"points"`
}

func analyticsSchema() admin.Schema {
	point := map[string]admin.Schema{"time": {"type": "string", "format": "date-time", "description": "when the step began"}}
	required := []string{"time"}
	for _, c := range history.Columns() {
		point[c.Name] = admin.Schema{"type": []string{"number", "null"}, "description": c.Help}
		required = append(required, c.Name)
	}
	moment := admin.Schema{"type": "string", "format": "date-time"}
	return admin.Schema{"type": "object", "required": []string{"room", "from", "to", "step_seconds", "missing", "points"}, "properties": map[string]admin.Schema{
		"room": {"type": "string"}, "from": moment, "to": moment, "step_seconds": {"type": "number"},
		"missing": {"type": "array", "items": admin.Schema{"type": "string"}, "description": "names of nodes that did not say what they know"},
		"points":  {"type": "array", "items": admin.Schema{"type": "object", "required": required, "properties": point}},
	}}
}

func analyticsQuery() []admin.Parameter {
	moment := admin.Schema{"type": "string", "format": "date-time"}
	return []admin.Parameter{
		{Name: "from", Meaning: "Since when, a day before to at most. An hour before to, if it is left out.", Schema: moment},
		{Name: "to", Meaning: "Until when. Now, if it is left out.", Schema: moment},
		{Name: "step", Meaning: "How long a step is: whole minutes, such as 5m, up to 24h.", Schema: admin.Schema{"type": "string", "default": "1m"}},
		{Name: "format", Meaning: "json, or csv for a table (RFC 4180).", Schema: admin.Schema{"type": "string", "enum": []string{"json", "csv"}, "default": "json"}},
	}
}

func (m *manager) analytics(ctx context.Context, c *admin.Call) (admin.Answer, error) {
	r, err := c.Room()
	if err != nil {
		return admin.Answer{}, err
	}
	q, err := m.readAnalytics(c)
	if err != nil {
		return admin.Answer{}, err
	}
	series, missing, err := m.mesh.History(ctx, r.Settings.ID, q.from, q.to)
	if err != nil {
		return admin.Answer{}, err
	}
	points, err := series.Steps(q.step)
	if err != nil {
		return admin.Answer{}, err
	}
	missing = append([]string{}, missing...)
	slices.Sort(missing)
	if !q.table {
		return admin.Answer{Result: Analytics{Room: r.Settings.ID.String(), From: q.from.UTC(), To: q.to.UTC(), Step: q.step.Seconds(), Missing: missing, Points: history.AppendJSON(nil, points)}}, nil
	}
	text, err := history.AppendCSV(nil, points)
	if err != nil {
		return admin.Answer{}, err
	}
	table := &admin.Response{Status: http.StatusOK, ContentType: "text/csv; charset=utf-8", Body: text}
	if len(missing) > 0 {
		table.Header = map[string]string{MissingField: strings.Join(missing, ", ")}
	}
	return admin.Answer{Raw: table}, nil
}

// analyticsAsked is what a query asks for.
type analyticsAsked struct {
	from, to time.Time
	step     time.Duration
	table    bool
}

func (m *manager) readAnalytics(c *admin.Call) (q analyticsAsked, err error) {
	if q.to, err = momentOf(c, "to", m.now()); err != nil {
		return q, err
	}
	if q.from, err = momentOf(c, "from", q.to.Add(-analyticsSpan)); err != nil {
		return q, err
	}
	if span := q.to.Truncate(time.Minute).Sub(q.from.Truncate(time.Minute)); span < time.Minute || span > history.Span {
		return q, admin.Wrong("from", c.Query.Get("from"), fmt.Sprintf("a time from 1m to %s before to, which is %s", shortSpan(history.Span), q.to.UTC().Format(time.RFC3339)))
	}
	q.step = analyticsStep
	if given := c.Query.Get("step"); given != "" {
		if q.step, err = time.ParseDuration(given); err != nil || q.step < time.Minute || q.step > history.Span || q.step%time.Minute != 0 {
			return q, admin.Wrong("step", given, "whole minutes from 1m to "+shortSpan(history.Span))
		}
	}
	switch given := c.Query.Get("format"); given {
	case "", "json":
	case "csv":
		q.table = true
	default:
		return q, admin.Wrong("format", given, "json or csv")
	}
	return q, nil
}

func momentOf(c *admin.Call, name string, unsaid time.Time) (time.Time, error) {
	given := c.Query.Get(name)
	if given == "" {
		return unsaid, nil
	}
	t, err := settings.ParseTime(given)
	if err != nil {
		return t, admin.Wrong(name, given, "a time in RFC 3339, such as 2026-07-01T18:00:00Z")
	}
	return t, nil
}

// shortSpan writes a span of whole hours.
func shortSpan(d time.Duration) string { return fmt.Sprintf("%dh", int(d.Hours())) }
