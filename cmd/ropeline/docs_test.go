package main

import (
	"os"
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

// TestDocsShowSettingsThatWork reads every example of a configuration file.
func TestDocsShowSettingsThatWork(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for part := range strings.SplitSeq(string(text), "```yaml\n") {
		if examples++; examples == 1 {
			continue // what stands before the first
		}
		example, _, closed := strings.Cut(part, "```")
		cfg, err := parse(t, example)
		if err == nil {
			_, err = cfg.rooms()
		}
		if err == nil && len(cfg.Proxy.Origins.Servers) > 0 {
			err = cfg.checkProxy()
		}
		if err != nil || !closed {
			t.Errorf("this example does not work: %v\n%s", err, example)
		}
	}
	if examples < 4 {
		t.Errorf("only %d examples were found", examples-1)
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
