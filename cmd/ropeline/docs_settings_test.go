package main

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/ropeline/ropeline/bench/golden"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/settings"
)

// TestDocsHaveTheSettings holds the tables of settings in the documentation to those that
// everything else goes by; -update writes them.
func TestDocsHaveTheSettings(t *testing.T) {
	flags := slices.Clone(roomFields())
	for i, f := range room.Fields(nil) { // in which a language is not one of a long list
		f.Name = flags[i].Name
		flags[i] = f
	}
	docTable(t, "configuration.md", "room", "name", flags, defaultRoom())
	docTable(t, "configuration.md", "cookie", "in `cookie-attributes`", room.CookieFields, room.CookieAttributes{})
	docTable(t, "configuration.md", "rule", "in `rules`", room.RuleFields, room.Rule{Action: room.Bypass})
	docTable(t, "configuration.md", "event", "in `events`", room.EventFields, room.Event{})
	docTable(t, "configuration.md", "health-check", "in `health-check`", checkFields, defaultCheck())
	docTable(t, "rate-limits.md", "rate-limit", "setting", limit.Fields, limit.Rule{}.WithDefaults())
}

// docTable compares a table between marks in a page. blank has the defaults.
func docTable[T any](t *testing.T, page, mark, head string, fields settings.Table[T], blank T) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | default | allowed | meaning |\n|---|---|---|---|\n", head)
	for _, f := range fields {
		meaning := f.Meaning
		if f.Details != "" {
			meaning += ". " + f.Details
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, defaultCell(f, &blank), f.Of(&blank).Spec().Allowed, meaning)
	}
	golden.Part(t, "../../docs/"+page, "<!-- "+mark+": begin -->\n", "<!-- "+mark+": end -->\n", b.String())
}

// TestDocsHaveTheDefaultsOfNodes holds what the page says of settings of a node, in words of
// its own, to the defaults and bounds that they have.
func TestDocsHaveTheDefaultsOfNodes(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") && len(cells) > 3 {
			rows[strings.Trim(cells[0], "| `")] = cells
		}
	}
	bounds := regexp.MustCompile(`from (\S+) to ([\w.]+)`)
	cfg := defaultConfig()
	defaults, ranges := 0, 0
	allowed := "" // in the row above, which an empty cell repeats
	for _, f := range nodeFields {
		cells := rows[f.Name]
		if cells == nil {
			continue // with others in one row, as TestDocsListEverySetting knows
		}
		v := f.Of(&cfg)
		if is := strings.Trim(cells[1], "`"); f.Name != "name" && v.String() != "" && v.String() != "0" && is != v.String() && !strings.HasPrefix(is, "that of") {
			t.Errorf("%s is %s by default, and the page says %s", f.Name, v, is)
		}
		defaults++
		if !strings.HasPrefix(cells[2], "|") {
			allowed = cells[2]
		}
		if m := bounds.FindStringSubmatch(v.Spec().Allowed); m != nil && !v.Spec().IsList() {
			if ranges++; !strings.Contains(allowed, m[1]+" to "+m[2]) {
				t.Errorf("%s may be from %s to %s, and the page says %s", f.Name, m[1], m[2], allowed)
			}
		}
	}
	if defaults < 60 || ranges < 25 {
		t.Errorf("only %d rows and %d bounds were found", defaults, ranges)
	}
}

func defaultCell[T any](f settings.Field[T], blank *T) string {
	v := f.Of(blank)
	switch {
	case v.String() == "" && f.None != "":
		return f.None
	case v.String() == "" && f.Required:
		return "required"
	case v.String() == "":
		return "none"
	case v.Spec().Schema["type"] == "string":
		return "`" + v.String() + "`"
	}
	return v.String()
}

// TestEverySettingIsEverywhere: what is in the table of rooms is a flag, a line of the file,
// a field of the API and of its document.
func TestEverySettingIsEverywhere(t *testing.T) {
	api, err := admin.New(admin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(api.Do(t.Context(), admin.Request{Method: http.MethodGet, Path: "/api/v1/openapi.json"}).Body)
	if err != nil {
		t.Fatal(err)
	}
	flags := newRunCommand().Flags()
	s := defaultRoom()
	s.Name = "shop"
	for _, f := range roomFields() {
		flag := flags.Lookup(f.Name)
		if flag == nil || !strings.HasPrefix(flag.Usage, f.Meaning) {
			t.Errorf("--%s: there is no such flag with that meaning", f.Name)
			continue
		}
		value := f.Of(&s)
		text := value.String()
		if !value.Spec().IsNumber() && !value.Spec().IsTruth() {
			text = fmt.Sprintf("%q", text)
		}
		if value.Spec().IsList() {
			text = "[" + value.String() + "]"
		}
		if _, err := parse(t, f.Name+": "+text); err != nil {
			t.Errorf("as a line of the file: %v", err)
		}
		name := strings.ReplaceAll(f.Name, "-", "_")
		if name == "room" {
			name = "name"
		}
		for _, schema := range []string{"Room", "RoomNew", "RoomChange"} {
			if p := doc.Components.Schemas[schema].Value.Properties[name]; p == nil || p.Value.Description == "" {
				t.Errorf("%s of the document has no %s with its meaning", schema, name)
			}
		}
	}
}
