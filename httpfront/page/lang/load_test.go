package lang

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ropeline/ropeline/bench/must"
)

// loadInstead loads the texts of a language with one part replaced.
func loadInstead(t *testing.T, tag Tag, part, instead string) error {
	t.Helper()
	name := "texts/" + tag + ".json"
	src := must.Do(files.ReadFile(name))
	if strings.Count(string(src), part) != 1 {
		t.Fatalf("%s does not have %s once", name, part)
	}
	changed := strings.Replace(string(src), part, instead, 1)
	_, _, err := load(fstest.MapFS{name: {Data: []byte(changed)}})
	return err
}

// TestLoadRefuses has one mistake per line, and what must be said of it.
func TestLoadRefuses(t *testing.T) {
	for _, m := range []struct {
		tag, part, want string
		insteads        []string
	}{
		// The file.
		{English, `"name": "English",`, "name is missing", []string{``}},
		{English, `"name": "English",`, "cannot unmarshal number", []string{`"name": 1,`}},
		{English, `"name": "English",`, `unknown field "title"`, []string{`"title": "English",`}},
		{English, `"name": "English",`, "invalid character", []string{`"name": "English"`}},
		{English, `"ltr"`, `direction "left" must be ltr or rtl`, []string{`"left"`}},
		{English, `"h:mm:ss a"`, `clock "h:mm" is none of those that are known`, []string{`"h:mm"`}},
		{English, `["AM", "PM"]`, "needs two different dayPeriods", []string{`["AM"]`, `["AM", "AM"]`, `["AM", ""]`}},
		{"de-DE", `"HH:mm:ss"`, "has no a, but there are dayPeriods", []string{`"HH:mm:ss", "dayPeriods": ["AM", "PM"]`}},

		// Texts.
		{English, `"titleInLine": "You are in line",`, "titleInLine is missing", []string{``}},
		{English, `"titleInLine"`, "titelInLine: there is no such key", []string{`"titelInLine"`}},
		{English, `"You are in line"`, "titleInLine is missing", []string{`""`}},
		{English, `"You are in line"`, "begins or ends with a space", []string{`" You are in line"`, `"You are in line\u00a0"`}},
		{English, `"You are in line"`, "means something in HTML or JSON", []string{`"You are <b>in line</b>"`, `"You&amp;I are in line"`}},
		{English, `"You are in line"`, "quotes must be ’", []string{`"You're in line"`}},
		{English, `"You are in line"`, "means something in HTML or JSON", []string{`"You are \"in line\""`, `"You are\nin line"`}},
		{English, `"You are in line"`, "means something in HTML or JSON", []string{`"You are\\in line"`, `"You are\u2028in line"`}},
		{English, `"You are in line"`, "can have no placeholders", []string{`"You are {n} in line"`}},
		{English, `"You are in line"`, "titleInLine has 43 characters, 3 more than fit", []string{`"` + strings.Repeat("a", 43) + `"`}},

		// Patterns.
		{English, `"tab": "#{position} · {title}"`, "needs {position} and {title}", []string{`"tab": "{title}"`}},
		{English, `"{first} and {second}"`, "has the placeholder {first} twice", []string{`"{first} and {first}"`}},
		{English, `"{first} and {second}"`, "has a placeholder other than {first} and {second}", []string{`"{first} and {third}"`}},
		{English, `"{first} and {second}"`, "has a placeholder other than {first} and {second}", []string{`"{first} and {second"`}},
		{English, `"{first} and {second}"`, "has a } without a {", []string{`"{first} and second}"`}},
		{English, `"{first} and {second}"`, "has the placeholder {second} twice", []string{`"{first}, {second} and {second}"`}},

		// Counts.
		{English, `, "other": "{n} minutes"`, "minutes.other is missing", []string{``}},
		{English, `"{n} minutes"`, `minutes.other: "minutes" needs {n}`, []string{`"minutes"`}},
		{English, `"other": "{n} minutes"`, "minutes.few: no number from 1 to 59 has that form", []string{`"few": "{n} minutes", "other": "{n} minutes"`}},
		{English, `"other": "{n} minutes"`, "minutes.plural: there is no such form", []string{`"plural": "{n} minutes", "other": "{n} minutes"`}},
		{"ru-RU", `"one": "{n} минута"`, `minutes.one: "минута" needs {n}`, []string{`"one": "минута"`}}, // 21 has the form too
		{English, `"about {low} to {high} minutes"`, "needs {low} and {high}", []string{`"about {high} minutes"`}},
		{English, `"counts": {`, "weeks: there is no such key", []string{`"counts": {"weeks": {"other": "{n} weeks"},`}},

		// Numbers.
		{English, `"numbers": {"group": ","`, `group " " is no separator`, []string{`"numbers": {"group": " "`}},
		{English, `"numbers": {"group": ","`, `zero "1" is not the digit 0`, []string{`"numbers": {"zero": "1", "group": ","`}},
		{English, `"numbers": {"group": ","`, `zero "x" is not the digit 0`, []string{`"numbers": {"zero": "x", "group": ","`}},
		{English, `"IN": {`, `regions: "INDIA"`, []string{`"INDIA": {`}},
		{English, `"CH": {"group": "’"}`, `CH: group "'" is no separator`, []string{`"CH": {"group": "'"}`}},
	} {
		for _, instead := range m.insteads {
			err := loadInstead(t, m.tag, m.part, instead)
			if err == nil || !strings.Contains(err.Error(), m.want) || !strings.HasPrefix(err.Error(), "texts/"+m.tag+".json: ") {
				t.Errorf("%s instead of %s: got %v, want %q", instead, m.part, err, m.want)
			}
		}
	}
}

// TestLoadTakes has what is close to a mistake.
func TestLoadTakes(t *testing.T) {
	for _, m := range []struct{ part, instead string }{
		{`"You are in line"`, `"` + strings.Repeat("字", longest[title]) + `"`},
		{`"You are in line"`, `"You’re “in line”"`},
		{`"{n} minute"`, `"one minute"`},
		{`"{first} and {second}"`, `"{second} and {first}"`},
		{`"{first} and {second}"`, `"{first}{second}"`},
	} {
		if err := loadInstead(t, English, m.part, m.instead); err != nil {
			t.Errorf("%s instead of %s: %v", m.instead, m.part, err)
		}
	}
}

// TestLoadNamesAllMistakes of all files at once.
func TestLoadNamesAllMistakes(t *testing.T) {
	_, _, err := load(fstest.MapFS{
		"texts/de-DE.json":   {Data: []byte(`{}`)},
		"texts/klingon.json": {Data: []byte(`{"direction": "ltr"}`)},
		"texts/fr-FR.json":   {Data: []byte(`[]`)},
	})
	if err == nil {
		t.Fatal("there is no error")
	}
	var want []string
	for _, spec := range textSpecs {
		want = append(want, "texts/de-DE.json: "+spec.key+" is missing\n")
	}
	for _, spec := range countSpecs {
		want = append(want, fmt.Sprintf("texts/de-DE.json: %s.other is missing\n", spec.key))
	}
	want = append(want, `texts/de-DE.json: direction "" must be`, "texts/fr-FR.json: json: cannot unmarshal array", "texts/klingon.json: its name must be a language tag")
	for _, w := range want {
		if !strings.Contains(err.Error()+"\n", w) {
			t.Errorf("the error does not have %q:\n%v", w, err)
		}
	}
}
