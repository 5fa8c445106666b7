package page

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/cbroglie/mustache"

	"github.com/ropeline/ropeline/bench/must"
)

// everything is a template with every variable that operators know.
func everything() string { return string(must.Do(os.ReadFile("testdata/template/all.mustache"))) }

func compiled(src string) *Template {
	tmpl, _, err := Compile(src)
	return must.Do(tmpl, err)
}

// TestTemplateOfEverySituation compares with files under testdata/template.
func TestTemplateOfEverySituation(t *testing.T) {
	tmpl, warnings, err := Compile(everything())
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	for v := range Variables() {
		if !v.Own && !strings.Contains(everything(), v.Name) {
			t.Errorf("the template lacks the variable %s", v.Name)
		}
	}
	p := newPage(Config{Template: tmpl})
	for name, in := range situations() {
		compare(t, "template/"+name+".html", p.AppendHTML(nil, fill(p, in)))
	}
}

// TestTemplateSaysWhatJSONSays: a template and the JSON get the same values.
func TestTemplateSaysWhatJSONSays(t *testing.T) {
	p := newPage(Config{Message: `5 < 6 & "more"`})
	for v := range Variables() {
		tmpl := compiled("{{" + v.Name + "}}|{{#" + v.Name + "}}yes{{/" + v.Name + "}}")
		for name, in := range situations() {
			s := fill(p, in)
			page := must.Do(tmpl.append(nil, s))
			want := string(htmlEscapes.escape(v.appendText(nil, s), 0)) + "|"
			if !v.isEmpty(nil, s) {
				want += "yes"
			}
			equal(t, name+": "+v.Name+" in templates", string(page), want)
		}
	}
}

// TestTemplatesDoNotReloadWithoutAPause where the room lets nobody in, however their refreshes are written.
func TestTemplatesDoNotReloadWithoutAPause(t *testing.T) {
	for src, refreshes := range map[string]bool{
		`<meta http-equiv="refresh" content="{{refreshIntervalSeconds}}" />`:                                true,
		"<META\n content='{{{ refreshIntervalSeconds }}}; url=/x' HTTP-EQUIV = Refresh >":                   true,
		"{{#waitTimeKnown}}{{/waitTimeKnown}}<meta http-equiv=refresh content={{&refreshIntervalSeconds}}>": true,
		`<meta http-equiv="refresh" content="30">`:                                                          false,
		`<meta name="x" content="{{refreshIntervalSeconds}}">`:                                              false,
		`<meta http-equiv="refresh" content="30"><p>{{refreshIntervalSeconds}}`:                             false,
	} {
		tmpl, warnings, err := Compile("<head>\n" + src)
		if err != nil || len(warnings) > 0 != refreshes || refreshes && !strings.HasPrefix(warnings[0].String(), "line 2: a refresh by") {
			t.Errorf("%s: %v, %v", src, warnings, err)
			continue
		}
		p := newPage(Config{Template: tmpl})
		for name, in := range situations() {
			s := fill(p, in)
			page := string(p.AppendHTML(nil, s))
			if sent := strings.Contains(strings.ToLower(page), "<meta"); sent != (!refreshes || s.Refresh() > 0) || refreshes && sent != strings.Contains(page, "20") {
				t.Errorf("%s, %s: %s", src, name, page)
			}
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"a\n{{> x}}", "template: line 2: {{> x}}: templates cannot include others; write its text here"},
		{"{{#queueAll}}\n\n{{=<% %>=}}<%>/etc/passwd%>", "line 3: <%>/etc/passwd%>: templates cannot include others"},
		{"\n{{waitTime", "line 2: a tag is not closed by }}"},
		{"{{{waitTime}}", "line 1: a tag is not closed by }}"},
		{"{{ {waitTime}}", "line 1: a tag with three braces is not closed by three"},
		{"{{}}", "line 1: a tag is empty"},
		{"{{#queueAll}}", "line 1: Section queueAll has no closing tag"},
		{"{{#queueAll}}\n{{/queueIsFull}}", "line 2: interleaved closing tag: queueIsFull"},
		{"{{/queueAll}}", "line 1: unmatched close tag"},
		{"\n{{=<%=}}", "line 2: {{=<%=}}: want two delimiters"},
		{"{{=<%  %>=}}", "want two delimiters with one space between them"},
		{"{{.}}", "line 1: {{.}} has a meaning only inside a section"},
		{"{{#.}}{{.}}{{/.}}", "has a meaning only inside a section"},
		{"{{^queueAll}}{{.}}{{/queueAll}}", "has a meaning only inside a section"},
		{strings.Repeat("{{#queueAll}}", nestedMax+1), "more than 32 sections are open at once"},
		{"\n" + strings.Repeat("{{x}}", tagsMax+1), "line 2: more than 10000 tags"},
		{"\xff", "it is not in UTF-8"},
		{strings.Repeat("a", TemplateMax+1), "it has 1048577 bytes; want at most 1048576"},
		{strings.Repeat("{{message}}{{message}}", tagsMax/2) + strings.Repeat("a", 700_000), "it makes a page of more than 2097152 bytes"},
	} {
		tmpl, _, err := Compile(tt.src)
		if err == nil || !strings.Contains(err.Error(), tt.want) || tmpl != nil {
			t.Errorf("%.60q: got %v, want an error with %q", tt.src, err, tt.want)
		}
	}
}

func TestCompileTakes(t *testing.T) {
	s := fill(newPage(Config{Message: "<b>&"}), inputOf("fifo"))
	for src, want := range map[string]string{
		"":                                    "",
		"no tags }} here":                     "no tags }} here",
		"{{! {{> x}} }}":                      " }}",
		"{{#waitTime}}{{.}} min{{/waitTime}}": "61 min",
		"{{#waitTime}}{{^queueAll}}{{.}}{{/queueAll}}{{/waitTime}}":                                                   "61",
		"{{#waitTimeFormatted}}{{{.}}}{{/waitTimeFormatted}}":                                                         "1 hour and 1 minute",
		"{{{operatorMessage}}}{{&operatorMessage}}{{operatorMessage}}{{#operatorMessage}}{{{.}}}{{/operatorMessage}}": strings.Repeat("&lt;b&gt;&amp;", 4),
		"{{waitTime.x}}{{a.b.c}}{{nil}}":                                                                              "",
		"{{=[ ]=}}[waitTime]{{waitTime}}[={{ }}=]{{waitTime}}":                                                        "61{{waitTime}}61",
		strings.Repeat("a", TemplateMax):                                                                              strings.Repeat("a", TemplateMax),
	} {
		got, err := compiled(src).append([]byte("before "), s)
		if err != nil || string(got) != "before "+want {
			t.Errorf("%.60q: got %.60q, %v, want %.60q", src, got, err, want)
		}
	}
}

func TestUnknownVariablesAreNamed(t *testing.T) {
	_, warnings, err := Compile("{{waitTime}}\n{{#waittime}}{{waitTime.x}}{{/waittime}}\n{{{turnstyle}}}{{turnstyle}}\n{{weatherForecast}}{{^positoin}}{{/positoin}}")
	got := ""
	for _, w := range must.Do(warnings, err) {
		got += w.String() + "\n"
	}
	const want = `line 2: "waittime" is not known here and shows nothing; did you mean "waitTime"?
line 2: "waitTime.x" is not known here and shows nothing; did you mean "waitTime"?
line 3: "turnstyle" is not known here and shows nothing; did you mean "turnstile"?
line 4: "weatherForecast" is not known here and shows nothing
line 4: "positoin" is not known here and shows nothing; did you mean "position"?
`
	equal(t, "warnings", got, want)
}

// TestTemplateFailsOnce: what cannot be rendered is replaced by the built-in page,
// and the log says so once.
func TestTemplateFailsOnce(t *testing.T) {
	// Compile tries messages of no length.
	tmpl := compiled(strings.Repeat("{{operatorMessage}}", tagsMax))
	var log bytes.Buffer
	p := newPage(Config{Template: tmpl, Message: strings.Repeat("x", messageMax), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		page := p.AppendHTML([]byte("before"), fill(p, inputOf("fifo")))
		if !bytes.HasPrefix(page, []byte("before<!doctype html>")) || !bytes.Contains(page, []byte("1,235")) {
			t.Fatalf("got %.200q", page)
		}
	}
	if n := strings.Count(log.String(), "cannot render"); n != 1 || !strings.Contains(log.String(), "more than 2097152 bytes") {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

// TestPolicyOfTemplates: a template brings its own scripts, styles and pictures.
func TestPolicyOfTemplates(t *testing.T) {
	p := newPage(Config{Template: compiled("hello"), FrameAncestors: []string{"'self'", "https://a.example"}})
	equal(t, "policy", p.ContentSecurityPolicy(), "frame-ancestors 'self' https://a.example")
}

// flatten lists what the library has understood.
func flatten(list []mustache.Tag) []tag {
	var out []tag
	for _, t := range list {
		sigil, known := map[mustache.TagType]byte{mustache.Variable: 0, mustache.Section: '#', mustache.InvertedSection: '^'}[t.Type()]
		if !known {
			sigil = '?'
		}
		out = append(out, tag{sigil: sigil, name: t.Name()})
		if sigil == '#' || sigil == '^' {
			out = append(out, flatten(t.Tags())...)
			out = append(out, tag{sigil: '/', name: t.Name()})
		}
	}
	return out
}

// FuzzTemplate: whatever is uploaded, nothing panics, pages are bounded, and our
// reading of the tags is the library's.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		"", "{{waitTime}}", "{{{turnstile}}}", "{{& waitTime }}", "{{#a}}{{^b}}x{{/b}}{{/a}}", "{{> x}}", "{{!c}}", "{{=<% %>=}}<%x%>",
		"{{#waitTime}}{{.}}{{/waitTime}}", "{{{", "{{{}}}", "{{ {x} }}", "{{ {x}}}", "{{=}}", "{{= =}}", "{{=a b=}}a{x}b", "{{#a}}\n {{/a}} \r\n", "{{a.b}}",
		strings.Repeat("{{#inWaitingRoom}}", 40), everything(),
	} {
		f.Add(seed)
	}
	p := newPage(Config{Message: `<script>alert("1")</script>`})
	var states []*State
	for _, in := range situations() {
		states = append(states, fill(p, in))
	}
	f.Fuzz(func(t *testing.T, src string) {
		tmpl, warnings, err := compile(src)
		if err != nil {
			return
		}
		ours, _ := readTags(src)
		for i := range ours {
			if line := ours[i].line; line < 1 || line > 1+strings.Count(src, "\n") {
				t.Errorf("a tag is on line %d", line)
			}
			ours[i].line = 0
		}
		if theirs := flatten(tmpl.tmpl.Tags()); fmt.Sprint(ours) != fmt.Sprint(theirs) {
			t.Errorf("we read\n%v\nand the library\n%v", ours, theirs)
		}
		for _, w := range warnings {
			if _, ok := indexOf[w.Name]; ok {
				t.Errorf("a warning about a variable that there is: %v", w)
			}
		}
		for _, s := range states {
			page, err := tmpl.append(nil, s)
			if err != nil || len(page) > outputMax {
				t.Errorf("%d bytes, %v", len(page), err)
			}
			if bytes.Contains(page, []byte("<script>alert")) && !strings.Contains(src, "<script>alert") {
				t.Errorf("an operator's message was inserted raw: %q", page)
			}
		}
	})
}

// BenchmarkWorstTemplate is the most work that a template can make.
func BenchmarkWorstTemplate(b *testing.B) {
	const open, end = "{{#inWaitingRoom}}", "{{/inWaitingRoom}}"
	src := strings.Repeat(open, nestedMax) + strings.Repeat("{{x}}", tagsMax-2*nestedMax) + strings.Repeat(end, nestedMax)
	p := newPage(Config{Template: compiled(src)})
	s := fill(p, inputOf("fifo"))
	var buf []byte
	for b.Loop() {
		buf = p.AppendHTML(buf[:0], s)
	}
}

// TestManyUnknownVariables: each has its warning, and of the first ones it says which was meant.
func TestManyUnknownVariables(t *testing.T) {
	var src strings.Builder
	for i := range 2 * meantMax {
		fmt.Fprintf(&src, "{{waitTime%d}}", i)
	}
	_, warnings, err := Compile(src.String())
	if err != nil || len(warnings) != 2*meantMax {
		t.Fatalf("%d warnings, %v", len(warnings), err)
	}
	for i, w := range warnings {
		if (w.Nearest == "waitTime") != (i < meantMax) {
			t.Fatalf("warning %d: %v", i, w)
		}
	}
}
