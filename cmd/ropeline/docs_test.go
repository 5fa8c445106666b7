package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// settingTables returns the tables of settings in a page, in their order.
func settingTables(t *testing.T, page string) (tables []settingTable) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		switch {
		case !strings.HasPrefix(line, "| "):
			inside = inside && strings.HasPrefix(line, "|--")
		case !inside:
			inside = true
			tables = append(tables, settingTable{strings.TrimPrefix(cells[0], "| "), map[string]int{}})
		default:
			for i, name := range strings.Split(cells[0], "`") {
				if i%2 == 1 {
					tables[len(tables)-1].rows[name]++
				}
			}
		}
	}
	return tables
}

// settingTable is one table: what stands over its first column, and how many rows each
// setting has.
type settingTable struct {
	head string
	rows map[string]int
}

// wantRows reports settings of fs, and of more, that have other than one row in the tables
// with that head in docs/configuration.md, and rows that are of none of them.
func wantRows(t *testing.T, head string, fs *pflag.FlagSet, more ...string) {
	t.Helper()
	wantRowsIn(t, "configuration.md", head, fs, more...)
}

// wantRowsIn is wantRows for any page.
func wantRowsIn(t *testing.T, page, head string, fs *pflag.FlagSet, more ...string) {
	t.Helper()
	rows, found := map[string]int{}, 0
	for _, table := range settingTables(t, page) {
		if table.head != head {
			continue
		}
		found++
		for name, n := range table.rows {
			rows[name] += n
		}
	}
	if found == 0 {
		t.Fatalf("docs/%s has no table headed %s", page, head)
	}
	fs.VisitAll(func(f *pflag.Flag) { more = append(more, f.Name) })
	for _, name := range more {
		if rows[name] != 1 {
			t.Errorf("docs/%s has %d rows of %s under %s, want 1", page, rows[name], name, head)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("docs/%s has a row of %s under %s, which is no setting", page, name, head)
	}
}

func TestDocsListEverySetting(t *testing.T) {
	var proxy proxyNodes
	var parts roomParts
	onlyInFiles := proxy.lists(parts.lists(lists{"lists": nil}))
	settings := pflag.NewFlagSet("run", pflag.ContinueOnError)
	newRunCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if !isNoSetting(f.Name) {
			settings.AddFlag(f)
		}
	})
	var more []string
	for name := range onlyInFiles {
		more = append(more, name)
	}
	wantRows(t, "name", settings, more...)
}

// TestDocsShowSettingsThatWork reads every example of a configuration file, in all
// pages.
func TestDocsShowSettingsThatWork(t *testing.T) {
	files := map[string]string{"wait.html": "<h1>{{title}}</h1>", "crawlers.txt": "192.0.2.0/24\n"}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]int{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(text), "```yaml\n")
		for _, part := range parts[1:] {
			example, _, closed := strings.Cut(part, "```")
			cfg, err := parseBeside(t, files, example)
			if err == nil {
				_, err = cfg.servedRooms()
			}
			if err == nil && len(cfg.Proxy.Origins.Servers) > 0 {
				err = cfg.check()
			}
			if err != nil || !closed {
				t.Errorf("%s: this example does not work: %v\n%s", page, err, example)
			}
			examples[filepath.Base(page)]++
		}
	}
	if examples["configuration.md"] < 5 || examples["pages.md"] < 1 {
		t.Errorf("only these examples were found: %v", examples)
	}
}

func TestDocsExplainEverySettingOfARule(t *testing.T) {
	var r room.Rule
	fs := pflag.NewFlagSet("rule", pflag.ContinueOnError)
	ruleFlags(fs, &r)
	wantRows(t, "in `rules`", fs)
	var kinds []string
	for _, kind := range listKinds {
		kinds = append(kinds, kind.key)
	}
	wantRows(t, "in a list", pflag.NewFlagSet("list", pflag.ContinueOnError), kinds...)
}

func TestDocsExplainEverySettingOfARateLimit(t *testing.T) {
	var r limit.Rule
	fs := pflag.NewFlagSet("rate limit", pflag.ContinueOnError)
	limitFlags(fs, &r)
	wantRowsIn(t, "rate-limits.md", "setting", fs)
}

func TestDocsExplainEverySettingOfAnEvent(t *testing.T) {
	var e room.Event
	fs := pflag.NewFlagSet("event", pflag.ContinueOnError)
	eventFlags(fs, &e)
	wantRows(t, "in `events`", fs, "custom-page-html")
}

func TestDocsExplainEverySettingOfAHealthCheck(t *testing.T) {
	var c upstream.Check
	fs := pflag.NewFlagSet("health-check", pflag.ContinueOnError)
	bind(fs, &c, checkFields)
	wantRows(t, "in `health-check`", fs)
}
