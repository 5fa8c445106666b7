package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
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
