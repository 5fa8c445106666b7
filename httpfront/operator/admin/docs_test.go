package admin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func apiPage() string {
	return string(must(os.ReadFile("../../../docs/api.md")))
}

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// TestExamplesOfThePage are sent one after the other.
func TestExamplesOfThePage(t *testing.T) {
	b := newBench(t)
	sent := 0
	var answer tree
	for _, m := range fence.FindAllStringSubmatch(apiPage(), -1) {
		switch kind, text := m[1], m[2]; kind {
		case "http":
			head, body, _ := strings.Cut(text, "\n")
			head, status, refused := strings.Cut(head, "# ")
			if !refused {
				status = "200"
			}
			fields := strings.Fields(head)
			var sends any
			if body = strings.TrimSpace(body); body != "" {
				sends = body
			}
			var got int
			if got, answer = b.ask(fields[0], fields[1], sends); fmt.Sprint(got) != strings.TrimSpace(status) {
				t.Errorf("%s\nis answered %d: %v", text, got, answer)
			}
			sent++
		case "json":
			var shown tree
			if err := json.Unmarshal([]byte(text), &shown); err != nil || !reflect.DeepEqual(shown, answer) {
				t.Errorf("the page shows\n%s\nand the answer is\n%v (%v)", text, answer, err)
			}
		}
	}
	if sent < 5 {
		t.Errorf("only %d examples were found", sent)
	}
}

// TestThePageHasEverything: fields, routes and codes.
func TestThePageHasEverything(t *testing.T) {
	b := newBench(t)
	text := apiPage()
	doc := b.document()
	for _, o := range objects {
		for name := range fieldsOf(doc.Components.Schemas[o.schema].Value, "") {
			name = name[strings.LastIndex(name, ".")+1:]
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("it has no field %s", name)
			}
		}
	}
	for _, r := range b.api.Routes() {
		path := strings.TrimPrefix(strings.TrimPrefix(r.Path, "/client/v4/zones/{zone}/waiting_rooms"), "/api/v1/rooms")
		if !strings.Contains(text, path+"`") {
			t.Errorf("it has no route %s", r.Path)
		}
	}
	codes := regexp.MustCompile(`(?m)^\tCode\w+\s*= (\d+)`).FindAllStringSubmatch(string(must(os.ReadFile("mistake.go"))), -1)
	for _, code := range codes {
		if !regexp.MustCompile(`(?m)^\| [\d, ]+ \|.*\b` + code[1] + `\b`).MatchString(text) {
			t.Errorf("it has no code %s", code[1])
		}
	}
	if len(codes) < 10 {
		t.Errorf("only %d codes were found", len(codes))
	}
}
