package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/node/room"
)

// parseBeside reads a configuration file's text, with other files beside it.
func parseBeside(t *testing.T, files map[string]string, text string, args ...string) (config, error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "ropeline.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return readAs(t, path, args...)
}

func TestWhatRoomsSayOfTheFront(t *testing.T) {
	files := map[string]string{"wait.html": "<h1>{{title}}</h1>\n", "crawlers.txt": "# of a search engine\n192.0.2.0/28\n\n  2001:db8::1  \n"}
	cfg, err := parseBeside(t, files, `
trusted-proxies: 127.0.0.1
country-header: CF-IPCountry
verdict-listen: 127.0.0.1:9081
verdict-country-header: X-Country
lists:
  office: {addresses: [192.0.2.0/24, "2001:db8:7::/48", 10.0.0.5..10.0.0.9, "::1"]}
  crawlers:
    addresses-file: crawlers.txt
  partners: {strings: [news.example, 7, "true"]}
  one: {addresses: 192.0.2.1}
message: Doors open at nine.
custom-page-file: wait.html
frame-ancestors: [self, https://partner.example]
rules:
  - expression: ip.src in $office
rooms:
  - room: a
    path: /a
    cookie-suffix: a
  - room: b
    path: /b
    cookie-suffix: b
    custom-page-html: |
      <p>
      {{position}}
    message: |
      Row A is sold out.
      Sorry!
    default-template-language: de-DE
    json-response-enabled: false
    frame-ancestors: none
    rules:
      - expression: |
          ip.src in $crawlers
            or http.host in $partners
        description: search engines
      - {expression: ssl, action: bypass_waiting_room, enabled: false}
  - {"room": "c", "path": "/c", "cookie_suffix": "c", "custom_page_html": "", "default_template_language": "fr-FR", "json_response_enabled": true, "message": "", "frame_ancestors": [],
     "rules": [{"action": "bypass_waiting_room", "expression": "ip.src in $one", "description": "d", "enabled": true}]}
`)
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.check(); cfg.Front.CountryHeader != "CF-IPCountry" || cfg.Front.VerdictCountryHeader != "X-Country" || err != nil && !strings.Contains(err.Error(), "--origin is missing") {
		t.Errorf("country header %q, %v", cfg.Front.CountryHeader, err)
	}
	rooms, err := cfg.servedRooms()
	if err != nil {
		t.Fatal(err)
	}
	outside := room.Rule{Expression: "ip.src in $office", Action: room.Bypass}
	for i, want := range []room.Front{
		{
			Rules: []room.Rule{outside}, CustomPage: files["wait.html"], Message: "Doors open at nine.",
			FrameAncestors: []string{"'self'", "https://partner.example"},
		},
		{
			Rules: []room.Rule{
				{Expression: "ip.src in $crawlers\n  or http.host in $partners\n", Description: "search engines", Action: room.Bypass},
				{Expression: "ssl", Action: room.Bypass, Disabled: true},
			},
			CustomPage: "<p>\n{{position}}\n", Language: "de-DE", Message: "Row A is sold out.\nSorry!", NoJSON: true,
			FrameAncestors: []string{"'none'"},
		},
		{Rules: []room.Rule{{Expression: "ip.src in $one", Description: "d", Action: room.Bypass}}, Language: "fr-FR"},
	} {
		defaults := defaultRoom().Front
		want.Binding, want.NewVisitors, want.Sharing = defaults.Binding, defaults.NewVisitors, defaults.Sharing
		if got := rooms[i].Front; !reflect.DeepEqual(got, want) {
			t.Errorf("room %s has\n\t%#v\nwant\n\t%#v", rooms[i].Name, got, want)
		}
	}
}

func TestPagesOfEvents(t *testing.T) {
	const times = "    event-start-time: 2026-11-27T10:00:00Z\n    event-end-time: 2026-11-27T12:00:00Z\n"
	cfg, err := parseBeside(t, map[string]string{"sale.html": "<p>Sale</p>"}, "events:\n"+
		"  - name: a\n    custom-page-file: sale.html\n"+times+
		"  - name: b\n    custom-page-html: \"\"\n"+strings.ReplaceAll(times, "-27T", "-28T")+
		"  - name: c\n"+strings.ReplaceAll(times, "-27T", "-29T"))
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for _, e := range cfg.Room.Events {
		if e.CustomPage == nil {
			pages = append(pages, "the room's")
			continue
		}
		pages = append(pages, fmt.Sprintf("%q", *e.CustomPage))
	}
	if got, want := strings.Join(pages, ", "), `"<p>Sale</p>", "", the room's`; got != want {
		t.Errorf("pages are %s, want %s", got, want)
	}
}

func TestThePageOfTheCommandLineWins(t *testing.T) {
	byFlag := filepath.Join(t.TempDir(), "flag.html")
	if err := os.WriteFile(byFlag, []byte("by flag"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"custom-page-html: by file", "custom-page-file: file.html", "message: b"} {
		cfg, err := parseBeside(t, map[string]string{"file.html": "by file"}, file, "--custom-page-file", byFlag, "--message", "a", "--json-response-enabled=false")
		if err != nil || cfg.Room.Front.CustomPage != "by flag" || cfg.Room.Front.Message != "a" || !cfg.Room.Front.NoJSON {
			t.Errorf("%s: got %+v, %v", file, cfg.Room.Front, err)
		}
	}
}

// TestFrontMistakesNameTheirPlace: each mistake is told with file, line, room, and the
// place within.
func TestFrontMistakesNameTheirPlace(t *testing.T) {
	files := map[string]string{"bad.html": "<p>\n{{#open}}", "empty.html": "", "bad.txt": "192.0.2.1\n# none\nten\n10.0.0.1/8\n"}
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"an expression": {"rules:\n  - expression: ssl\n  - description: x\n    expression: ssl and sll", []string{
			":4:5: rules[1].expression: line 1, column 9: there is no field sll; did you mean ssl?\n\tssl and sll\n\t        ^",
		}},
		"an expression in a block": {"rules:\n  - expression: |\n      ssl\n      and sll", []string{
			":2:5: rules[0].expression: line 2, column 5: there is no field sll; did you mean ssl?\n\tand sll\n\t    ^",
		}},
		"in a room of the list": {"rooms:\n  - room: a\n    rules: [{expression: ssl}, {expression: ss}]\n    custom-page-html: |\n      <p>\n      {{> x}}", []string{
			`:3:33: room "a": rules[1].expression: line 1, column 1: there is no field ss;`,
			`:4:23: room "a": custom-page-html: template: line 2: {{> x}}: templates cannot include others`,
		}},
		"one that is disabled": {"rules:\n  - expression: sll\n    enabled: false", []string{":2:5: rules[0].expression: line 1, column 1:"}},
		"beside other mistakes": {"rooms:\n  - room: a\n    rules:\n      - {expression: ssl, enabeld: true}\n      - expression: sll\n    refresh-interval: 0s", []string{
			`:4:27: room "a": enabeld: unknown key; did you mean "enabled"?`, `:5:9: room "a": rules[1].expression: line 1, column 1:`, `:6:23: room "a": refresh-interval:`,
		}},
		"no expression":       {"rules:\n  - description: a", []string{`:2:5: rules[0]: every rule needs a line "expression:"`}},
		"an empty expression": {"rules:\n  - expression: \"\"", []string{":2:17: expression:", "an expression of up to 4096 characters"}},
		"another action":      {"rules:\n  - {expression: ssl, action: block}", []string{`:2:31: action: "block" is not allowed: one of bypass_waiting_room, bypass`}},
		"no list":             {"rules:\n  expression: ssl", []string{":2:3: rules: a list of rules is wanted", "this is a mapping"}},
		"too long a remark":   {"rules:\n  - expression: ssl\n    description: " + strings.Repeat("é", 501), []string{":3:18: description:", "(501 characters)", "at most 500 characters"}},
		"too many":            {"rules:\n" + strings.Repeat("  - expression: ssl\n", 101), []string{`:2:3: rules: "101" is not allowed: want at most 100 rules`}},
		"a list that is none": {"rules:\n  - expression: ip.src in $offices\nlists:\n  office: {addresses: [192.0.2.1]}", []string{":2:5: rules[0].expression: line 1, column 11: there is no list $offices; did you mean $office?"}},

		"addresses": {"lists:\n  office:\n    addresses:\n      - 10.0.0.1/8\n      - ::1\n      - ten\nrules:\n  - expression: ip.src in $office", []string{
			`:4:9: lists.office.addresses: "10.0.0.1/8": the address has bits behind the first 8; the network is 10.0.0.0/8`,
			`:6:9: lists.office.addresses: "ten": this is not an IP address`,
		}},
		"addresses of a file":   {"lists:\n  bad: {addresses-file: bad.txt}", []string{`bad.txt:3: "ten": this is not an IP address`, `bad.txt:4: "10.0.0.1/8":`, ":2:25: lists.bad.addresses-file: "}},
		"a file that is none":   {"lists:\n  bad: {strings-file: none.txt}", []string{":2:23: lists.bad.strings-file: open ", "no such file"}},
		"an unknown kind":       {"lists:\n  bad: {adresses: [192.0.2.1]}", []string{`:2:9: adresses: unknown key; did you mean "addresses"?`}},
		"two kinds":             {"lists:\n  bad: {addresses: [], strings: []}", []string{":2:33: lists.bad: addresses and strings stand here; a list has one of addresses, addresses-file, strings, strings-file"}},
		"no kind":               {"lists:\n  bad: {}", []string{":2:8: lists.bad: what is in the list is missing"}},
		"a list of lists":       {"lists:\n  bad: {addresses: [[192.0.2.1]]}", []string{":2:20: lists.bad.addresses: one value is wanted; this is a list"}},
		"a list without a name": {"lists: [192.0.2.1]", []string{":1:8: lists: a mapping of names to lists is wanted", "this is a list"}},
		"a name of a list":      {"lists:\n  My-list: {addresses: []}", []string{":2:3: lists.My-list: a name of lower-case letters"}},
		"too many to tell":      {"lists:\n  bad: {addresses: [" + strings.Repeat("ten, ", 30) + "]}", []string{`"ten"`, "and 10 more that cannot be in the list"}},

		"a page that does not compile":  {"message: a\ncustom-page-file: bad.html", []string{":2:19: custom-page-file: ", "bad.html: template: "}},
		"a page of an event":            {"events:\n  - name: a\n    event-start-time: 2026-11-27T10:00:00Z\n    event-end-time: 2026-11-27T12:00:00Z\n    custom-page-html: \"{{#a}}\"", []string{":5:23: events[0].custom-page-html: template: "}},
		"no such page":                  {"custom-page-file: none.html", []string{":1:19: custom-page-file: open ", "none.html: no such file"}},
		"an empty page":                 {"custom-page-file: empty.html", []string{":1:19: custom-page-file: ", "empty.html is empty"}},
		"two pages":                     {"custom-page-html: a\ncustom-page-file: bad.html", []string{":1:19: custom-page-html: the page stands under \"custom-page-file\" in line 2 as well; keep one of the two"}},
		"a page that is no text":        {"custom-page-html: [a]", []string{":1:19: custom-page-html: one value is wanted; this is a list"}},
		"a language":                    {"rooms:\n  - room: a\n    default-template-language: de-AT", []string{`:3:32: room "a": default-template-language: "de-AT" is not allowed: one of ar-EG, bg-BG,`, "did you mean de-DE?"}},
		"a message":                     {"message: " + strings.Repeat("é", 301), []string{":1:10: message:", "(301 characters)\" is not allowed: a plain text of at most 300 characters"}},
		"text for JSON":                 {"json-response-enabled: \"false\"", []string{":1:24: json-response-enabled: true or false is wanted", "without quotes"}},
		"a frame":                       {"frame-ancestors: [self, \"a;b\"]", []string{`:1:25: frame-ancestors: "a;b": want 'self', 'none', or a source such as https://shop.example`}},
		"nobody and somebody in frames": {"frame-ancestors: [none, self]", []string{":1:25: frame-ancestors: 'none' stands alone"}},
		"a header of questions":         {"verdict-country-header: \"a b\"", []string{`:1:25: verdict-country-header: "a b" is not allowed`}},
		"a header of the country":       {"country-header: \"a b\"", []string{`:1:17: country-header: "a b" is not allowed`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseBeside(t, files, tt.text)
			if err == nil {
				t.Fatal("the file was accepted")
			}
			for _, part := range append(tt.want, "ropeline.yaml:") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error is\n\t%v\nwant it to contain\n\t%s", err, part)
				}
			}
		})
	}
}

// TestSharedFrontMistakesAreToldOnce: each room takes over what stands outside the
// list, and no list of its own hides what is wrong there.
func TestSharedFrontMistakesAreToldOnce(t *testing.T) {
	_, err := parse(t, "rules: [{expression: sll}]\nrooms:\n  - {room: a, path: /a, cookie-suffix: a}\n  - {room: b, path: /b, cookie-suffix: b}")
	if err == nil || strings.Count(err.Error(), "sll; did you mean") != 1 || !strings.Contains(err.Error(), "ropeline.yaml:1:10: rules[0].expression:") {
		t.Errorf("error is %v, want one about line 1", err)
	}
	if _, err := parse(t, "rules: [{expression: sll}]\nrooms:\n  - {room: a, rules: []}"); err == nil || !strings.Contains(err.Error(), ":1:10: rules[0].expression:") {
		t.Errorf("error is %v, want one about line 1", err)
	}
}

func TestFrontFlagsThatAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--custom-page-file", "/nowhere/wait.html"},
		{"--default-template-language", "tlh"},
		{"--message", "a\tb"},
		{"--frame-ancestors", "none,self"},
		{"--json-response-enabled=perhaps"},
	} {
		var s room.Settings
		fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
		roomFlags(fs, &s)
		if err := fs.Parse(args); err == nil || !strings.Contains(err.Error(), strings.Trim(strings.SplitN(args[0], "=", 2)[0], "-")) {
			t.Errorf("%q: error %v, want one that names the flag", args, err)
		}
	}
	cfg, err := parse(t, "origin: http://a", "--country-header", "X-Country")
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.check(); err == nil || !strings.Contains(err.Error(), "--country-header needs --trusted-proxies") {
		t.Errorf("a country that nobody is believed about: %v", err)
	}
	if cfg, err = parse(t, "origin: http://a\ntrusted-proxies: 127.0.0.1\nverdict-country-header: X-Country"); err != nil {
		t.Fatal(err)
	}
	if err := cfg.check(); err == nil || !strings.Contains(err.Error(), ":3:1: verdict-country-header: --verdict-country-header needs --verdict-listen") {
		t.Errorf("a country of questions that nobody asks: %v", err)
	}
}
