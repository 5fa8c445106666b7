package signals

import (
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// evaluated is for how long rules are evaluated, once a minute. It is longer than any rule
// waits.
const evaluated = 90 * time.Minute

// usedLabel is a label that an annotation tells.
var usedLabel = regexp.MustCompile(`\$labels\.(\w+)`)

// firing returns the labels of alerts that fire after all minutes, without those of the
// rule. No alert may fire in the first one if its rule waits.
func firing(t *testing.T, r rulefmt.Rule, series string) (all []string) {
	t.Helper()
	var input strings.Builder
	input.WriteString("load 1m\n")
	for line := range strings.Lines(series) {
		input.WriteString("  " + strings.TrimSpace(line) + "\n")
	}
	loader, err := promqltest.NewLazyLoader(input.String(), promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatalf("%v in:\n%s", err, series)
	}
	defer loader.Close()
	expr, err := promql.ParseExpr(r.Expr)
	if err != nil {
		t.Fatal(err)
	}
	rule := rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), 0, labels.FromMap(r.Labels), labels.FromMap(r.Annotations),
		labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
	query := rules.EngineQueryFunc(loader.QueryEngine(), loader.Queryable())
	for at := time.Unix(0, 0); !at.After(time.Unix(0, 0).Add(evaluated)); at = at.Add(time.Minute) {
		loader.WithSamplesTill(at, func(err error) {
			if err == nil {
				_, err = rule.Eval(t.Context(), 0, at, query, &url.URL{}, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		if at.Unix() == 0 && r.For > 0 && rule.State() == rules.StateFiring {
			t.Errorf("%s fires at once", r.Alert)
		}
	}
	for _, a := range rule.ActiveAlerts() {
		if a.State != rules.StateFiring {
			continue
		}
		a.Annotations.Range(func(l labels.Label) {
			if strings.Contains(l.Value, "<error") || strings.Contains(l.Value, "{{") {
				t.Errorf("%s says %q", r.Alert, l.Value)
			}
			for _, name := range usedLabel.FindAllStringSubmatch(r.Annotations[l.Name], -1) {
				if !a.Labels.Has(name[1]) {
					t.Errorf("%s tells the label %s, which it does not have: %s", r.Alert, name[1], a.Labels)
				}
			}
		})
		all = append(all, labels.NewBuilder(a.Labels).Del("alertname", "severity", "job", "__name__").Labels().String())
	}
	return all
}

// TestAlertsFireWhenTheyShould: each alert fires on the series of its trouble, with labels
// that say where, and keeps still on series that are close to it.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	tried := map[string]bool{}
	all := alertRules(t)
	for _, c := range cases {
		tried[c.alert] = true
		for _, r := range all {
			if r.Alert != c.alert {
				continue
			}
			if got := strings.Join(firing(t, r, c.trouble), " "); got != c.fires {
				t.Errorf("%s fires for %q, want %q, on\n%s", c.alert, got, c.fires, c.trouble)
			}
			for _, still := range c.still {
				if got := firing(t, r, still); len(got) > 0 {
					t.Errorf("%s fires for %q on\n%s", c.alert, got, still)
				}
			}
		}
	}
	for _, r := range all {
		if !tried[r.Alert] {
			t.Errorf("nobody tried whether %s fires", r.Alert)
		}
	}
	if len(tried) != len(all) {
		t.Errorf("%d alerts were tried of %d", len(tried), len(all))
	}
}
