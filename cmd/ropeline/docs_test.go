package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node/room"
)

func TestDocsListEverySetting(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	newRunCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "config" || f.Name == "help" {
			return
		}
		rows++
		if !strings.Contains(string(text), "`"+f.Name+"`") {
			t.Errorf("docs/configuration.md does not explain --%s", f.Name)
		}
	})
	if rows < 20 {
		t.Errorf("only %d flags were found", rows)
	}
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
				_, err = cfg.rooms()
			}
			if err == nil && len(cfg.Proxy.Origins.Servers) > 0 {
				err = cfg.checkProxy()
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
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| in `rules` |")
	if !ok {
		t.Fatal("there is no table of rules")
	}
	var names []string
	var r room.Rule
	fs := pflag.NewFlagSet("rule", pflag.ContinueOnError)
	ruleFlags(fs, &r)
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	for _, kind := range listKinds {
		names = append(names, kind.key)
	}
	for _, name := range names {
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("docs/configuration.md does not explain %s of a rule or list", name)
		}
	}
}

func TestDocsExplainEverySettingOfAnEvent(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, events, ok := strings.Cut(string(text), "### Events")
	if !ok {
		t.Fatal("there is no section on events")
	}
	var e room.Event
	fs := pflag.NewFlagSet("event", pflag.ContinueOnError)
	eventFlags(fs, &e)
	fs.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(events, "`"+f.Name+"`") {
			t.Errorf("docs/configuration.md does not explain %s of an event", f.Name)
		}
	})
}

func TestDocsExplainEverySettingOfAHealthCheck(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, checks, ok := strings.Cut(string(text), "| in `health-check` |")
	if !ok {
		t.Fatal("there is no table of health checks")
	}
	var c upstream.Check
	fs := pflag.NewFlagSet("health-check", pflag.ContinueOnError)
	checkFlags(fs, &c)
	fs.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(checks, "| `"+f.Name+"` |") {
			t.Errorf("docs/configuration.md does not explain %s of a health check", f.Name)
		}
	})
}
