package signals

import (
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	rulesFile     = "../alerts/ropeline.rules.yaml"
	dashboardFile = "../grafana/ropeline.json"
	alertsPage    = "../../docs/alerts.md"
	runbooks      = "https://github.com/ropeline/ropeline/blob/main/docs/alerts.md#"
)

var promqlParser = parser.NewParser(parser.Options{})

// known are the metrics that there are, with their labels.
type known map[string][]string

func knownMetrics(t *testing.T) known {
	t.Helper()
	text, err := os.ReadFile("metrics.json")
	if err != nil {
		t.Fatal(err)
	}
	var names struct {
		Metrics []struct {
			Name, Type string
			Labels     []string
		}
		Process []string
	}
	if err := json.Unmarshal(text, &names); err != nil {
		t.Fatal(err)
	}
	all := known{"up": nil}
	for _, m := range names.Metrics {
		if m.Type != "histogram" {
			all[m.Name] = m.Labels
			continue
		}
		all[m.Name+"_bucket"] = append([]string{"le"}, m.Labels...)
		all[m.Name+"_sum"], all[m.Name+"_count"] = m.Labels, m.Labels
	}
	for _, name := range names.Process {
		all[name] = nil
	}
	return all
}

// check reports what is wrong with a query: that it does not parse, or names a metric or
// a label that there is not. The labels that Prometheus adds are instance and job.
func (k known) check(t *testing.T, where, query string) {
	t.Helper()
	expr, err := promqlParser.ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %s: %v", where, query, err)
		return
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			labels, ok := k[n.Name]
			if !ok {
				t.Errorf("%s: there is no metric %q", where, n.Name)
			}
			for _, m := range n.LabelMatchers {
				if m.Name != "__name__" && !isLabel(labels, m.Name) {
					t.Errorf("%s: %s has no label %s", where, n.Name, m.Name)
				}
			}
		case *parser.AggregateExpr:
			k.checkGrouping(t, where, n)
		}
		return nil
	})
}

func (k known) checkGrouping(t *testing.T, where string, n *parser.AggregateExpr) {
	t.Helper()
	parser.Inspect(n.Expr, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			for _, label := range n.Grouping {
				if !isLabel(k[s.Name], label) {
					t.Errorf("%s: %s has no label %s to group by", where, s.Name, label)
				}
			}
		}
		return nil
	})
}

func isLabel(labels []string, name string) bool {
	return name == "instance" || name == "job" || slices.Contains(labels, name)
}

func alertRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, promqlParser, slog.New(slog.NewTextHandler(io.Discard, nil)))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil {
		t.FailNow()
	}
	var all []rulefmt.Rule
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// TestRulesAreComplete: each asks for what there is, says how bad it is and what to do, and
// has a place in the page.
func TestRulesAreComplete(t *testing.T) {
	page, err := os.ReadFile(alertsPage)
	if err != nil {
		t.Fatal(err)
	}
	metrics, rules := knownMetrics(t), alertRules(t)
	for _, r := range rules {
		metrics.check(t, r.Alert, r.Expr)
		for _, name := range []string{"summary", "description", "action"} {
			if r.Annotations[name] == "" {
				t.Errorf("%s has no %s", r.Alert, name)
			}
		}
		if want := runbooks + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s links to %s, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		severity := r.Labels["severity"]
		if severity != "critical" && severity != "warning" {
			t.Errorf("%s has the severity %q", r.Alert, severity)
		}
		_, section, found := strings.Cut(string(page), "\n### "+r.Alert+"\n")
		if !found || !strings.HasPrefix(section, "\n`"+severity+"`") {
			t.Errorf("%s does not explain %s, %s", alertsPage, r.Alert, severity)
		}
	}
	if n := strings.Count(string(page), "\n### "); n != len(rules) {
		t.Errorf("%s explains %d alerts of %d", alertsPage, n, len(rules))
	}
}

// panel is what the test needs of one of a dashboard.
type panel struct {
	ID      int
	Title   string
	Type    string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr string }
}

// variable is one of Grafana's own, or of the dashboard.
var variable = regexp.MustCompile(`\$(\w+)|\$\{(\w+)\}`)

func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Title, UID string
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
		Panels []panel
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	metrics := knownMetrics(t)
	values := map[string]string{"__rate_interval": "5m"}
	for _, v := range board.Templating.List {
		values[v.Name] = ".*"
		if v.Type == "query" {
			of := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(v.Definition)
			if of == nil || !slices.Contains(metrics[of[1]], of[2]) {
				t.Errorf("variable %s is %q, which asks for no label that there is", v.Name, v.Definition)
			}
		}
	}
	ids, queries := map[int]bool{}, 0
	for i, p := range board.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d has the id %d and the title %q", i, p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, o := range board.Panels[:i] {
			a, b := p.GridPos, o.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H || a.X+a.W > 24 {
				t.Errorf("%s covers %s, or stands out", p.Title, o.Title)
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			queries++
			metrics.check(t, p.Title, variable.ReplaceAllStringFunc(target.Expr, func(v string) string {
				value, ok := values[strings.Trim(v, "${}")]
				if !ok {
					t.Errorf("%s: there is no variable %s", p.Title, v)
				}
				return value
			}))
		}
	}
	if queries < 20 || board.Title == "" || board.UID == "" {
		t.Errorf("%d queries in %q (%s)", queries, board.Title, board.UID)
	}
}
