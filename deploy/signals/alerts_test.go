package signals

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
	"go.yaml.in/yaml/v3"
)

// evaluated is for how long rules are evaluated, once a minute. It is longer than any rule
// waits.
const evaluated = 90 * time.Minute

// ruleTest is one of the tests that promtool reads: series, and what fires on them.
type ruleTest struct {
	Name   string      `yaml:"name"`
	Every  string      `yaml:"interval"` // one of the values of a series, and an evaluation
	Series []series    `yaml:"input_series"`
	Alerts []alertTest `yaml:"alert_rule_test"`
}

type series struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type alertTest struct {
	At    string  `yaml:"eval_time"`
	Alert string  `yaml:"alertname"`
	Fires []alert `yaml:"exp_alerts"`
}

type alert struct {
	Labels map[string]string `yaml:"exp_labels"`
}

// test returns what tries a rule on series, on which it fires in the end, and not in the first minute if it
// waits; fires nil: it keeps still.
func test(r *rulefmt.Rule, on string, fires map[string]string) ruleTest {
	end := alertTest{At: evaluated.String(), Alert: r.Alert}
	if fires != nil {
		has := maps.Clone(r.Labels)
		maps.Copy(has, fires)
		end.Fires = []alert{{has}}
	}
	all := ruleTest{Name: r.Alert, Every: "1m", Alerts: []alertTest{end}}
	if r.For > 0 {
		all.Alerts = append(all.Alerts, alertTest{At: "0m", Alert: r.Alert})
	}
	for line := range strings.Lines(strings.TrimSpace(on)) {
		line = strings.TrimSpace(line)
		at := strings.LastIndex(line, "}") + 1
		all.Series = append(all.Series, series{line[:at], strings.TrimSpace(line[at:])})
	}
	return all
}

// promtool has the rules evaluated by Prometheus. Annotations are left out, which it would compare as well.
func promtool(t *testing.T, all []rulefmt.Rule, tests []ruleTest) {
	t.Helper()
	bare := slices.Clone(all)
	for i := range bare {
		bare[i].Annotations = nil
	}
	dir := t.TempDir()
	for name, what := range map[string]any{
		"rules.yaml": rulefmt.RuleGroups{Groups: []rulefmt.RuleGroup{{Name: "all", Rules: bare}}},
		"tests.yaml": map[string]any{"rule_files": []string{"rules.yaml"}, "tests": tests},
	} {
		text, err := yaml.Marshal(what)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", filepath.Join(dir, "tests.yaml")).CombinedOutput(); err != nil {
		t.Errorf("promtool (Debian's package prometheus has it): %v\n%s", err, out)
	}
}

// usedLabel is a label that an annotation tells.
var usedLabel = regexp.MustCompile(`\$labels\.(\w+)`)

// checkAnnotations reports which annotations of an alert with these labels cannot be told, or tell labels that it does not have.
func checkAnnotations(t *testing.T, r *rulefmt.Rule, has map[string]string) {
	t.Helper()
	answer := func(context.Context, string, time.Time) (promql.Vector, error) { return promql.Vector{{F: 7}}, nil }
	for name, text := range r.Annotations {
		data := template.AlertTemplateData(has, nil, "", promql.Sample{F: 3})
		defs := "{{$labels := .Labels}}{{$value := .Value}}"
		said, err := template.NewTemplateExpander(t.Context(), defs+text, r.Alert, data, 0, answer, nil, nil).Expand()
		if err != nil || strings.Contains(said, "{{") || text != "" && said == "" {
			t.Errorf("%s says %q as its %s: %v", r.Alert, said, name, err)
		}
		for _, label := range usedLabel.FindAllStringSubmatch(text, -1) {
			if _, ok := has[label[1]]; !ok {
				t.Errorf("%s tells the label %s, which it does not have: %v", r.Alert, label[1], has)
			}
		}
	}
}

// TestAlertsFireWhenTheyShould: each alert fires on the series of its trouble, with labels
// that say where, and keeps still on series that are close to it.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	all, tried := alertRules(t), map[string]bool{}
	var tests []ruleTest
	for _, c := range cases {
		tried[c.alert] = true
		i := slices.IndexFunc(all, func(r rulefmt.Rule) bool { return r.Alert == c.alert })
		if i < 0 {
			t.Fatalf("there is no alert %s", c.alert)
		}
		fires, err := promqlParser.ParseMetric(c.fires)
		if err != nil {
			t.Fatalf("%s: %v", c.fires, err)
		}
		has := fires.Map()
		checkAnnotations(t, &all[i], has)
		tests = append(tests, test(&all[i], c.trouble, has))
		for _, still := range c.still {
			tests = append(tests, test(&all[i], still, nil))
		}
	}
	for _, r := range all {
		if !tried[r.Alert] {
			t.Errorf("nobody tried whether %s fires", r.Alert)
		}
	}
	promtool(t, all, tests)
}
