package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// TestDocsOfTroubleNameWhatThereIs holds docs/troubleshooting.md to the fields of the status,
// the settings, and the words of answers and of the log.
func TestDocsOfTroubleNameWhatThereIs(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"status": true, "secrets[].id": true} // the latter is the command's own
	fieldsOf(known, "", reflect.TypeFor[node.Status]())
	fieldsOf(known, "", reflect.TypeFor[node.RoomStatus]())
	settings := pflag.NewFlagSet("run", pflag.ContinueOnError)
	settings.AddFlagSet(newRunCommand().Flags())
	ofLimits := pflag.NewFlagSet("rate limit", pflag.ContinueOnError)
	limitFlags(ofLimits, new(limit.Rule))
	settings.AddFlagSet(ofLimits)
	settings.VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	for name := range (&roomParts{}).lists(lists{}) {
		known[name] = true
	}

	sources := ourSources(t)
	inCode := regexp.MustCompile("`[^`]+`")
	quoted := regexp.MustCompile(`"[a-zA-Z][^"]* [^"]*"`)
	fields, texts := 0, 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		look, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, name := range inCode.FindAllString(look, -1) {
			name = strings.Trim(name, "`")
			if fields++; !known[name] && !isMethodOrPolicy(name) {
				t.Errorf("%q is no field of the status, no setting and no method: %s", name, line)
			}
		}
		for _, text := range quoted.FindAllString(line, -1) {
			texts++
			if text = strings.Trim(text, `"`); !strings.Contains(sources, text) {
				t.Errorf("nothing says %q: %s", text, line)
			}
		}
	}
	if fields < 30 || texts < 8 {
		t.Errorf("only %d names and %d texts were found: is the page still written in tables?", fields, texts)
	}
}

func isMethodOrPolicy(name string) bool {
	for _, f := range roomFields().Pick("queueing-method", "policy") {
		if slices.Contains(f.Of(new(room.Settings)).Spec().Schema["enum"].([]any), any(name)) {
			return true
		}
	}
	return strings.HasPrefix(name, "unknown-hosts: ") || strings.HasPrefix(name, "queueing-status-code: ") || name == "www."
}

// fieldsOf adds the names of the JSON fields of a type, those of its parts after a dot.
func fieldsOf(names map[string]bool, prefix string, typ reflect.Type) {
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		names[prefix+name] = true
		part, dot := f.Type, "."
		if part.Kind() == reflect.Slice {
			part, dot = part.Elem(), "[]."
		}
		if part.Kind() == reflect.Pointer {
			part = part.Elem()
		}
		if part.Kind() == reflect.Struct && strings.Contains(part.PkgPath(), "ropeline") {
			fieldsOf(names, prefix+name+dot, part)
		}
	}
}

// ourSources returns all code that is no test, in one.
func ourSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"node", "transport", "httpfront", "cmd"} {
		err := filepath.WalkDir("../../"+dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
