package lang

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// loadInstead loads the texts of a language with one part replaced.
func loadInstead(t *testing.T, tag Tag, part, instead string) error {
	t.Helper()
	name := "texts/" + tag + ".json"
	src := must(files.ReadFile(name))
	if strings.Count(string(src), part) != 1 {
		t.Fatalf("%s does not have %s once", name, part)
	}
	changed := strings.Replace(string(src), part, instead, 1)
	_, _, err := load(fstest.MapFS{name: {Data: []byte(changed)}})
	return err
}

// TestLoadRefuses has one mistake per line, and what must be said of it.
func TestLoadRefuses(t *testing.T) {
	for _, m := range []struct{ tag, part, instead, want string }{
		// The file.
		{English, `"name": "English",`, ``, "name is missing"},
		{English, `"name": "English",`, `"name": 1,`, "cannot unmarshal number"},
		{English, `"name": "English",`, `"title": "English",`, `unknown field "title"`},
		{English, `"name": "English",`, `"name": "English"`, "invalid character"},
		{English, `"ltr"`, `"left"`, `direction "left" must be ltr or rtl`},
		{English, `"h:mm:ss a"`, `"h:mm"`, `clock "h:mm" is none of those that are known`},
		{English, `["AM", "PM"]`, `["AM"]`, "needs two different dayPeriods"},
		{English, `["AM", "PM"]`, `["AM", "AM"]`, "needs two different dayPeriods"},
		{English, `["AM", "PM"]`, `["AM", ""]`, "needs two different dayPeriods"},
		{"de-DE", `"HH:mm:ss"`, `"HH:mm:ss", "dayPeriods": ["AM", "PM"]`, "has no a, but there are dayPeriods"},

		// Texts.
		{English, `"titleInLine": "You are in line",`, ``, "titleInLine is missing"},
		{English, `"titleInLine"`, `"titelInLine"`, "titelInLine: there is no such key"},
		{English, `"You are in line"`, `""`, "titleInLine is missing"},
		{English, `"You are in line"`, `" You are in line"`, "begins or ends with a space"},
		{English, `"You are in line"`, `"You are in line\u00a0"`, "begins or ends with a space"},
		{English, `"You are in line"`, `"You are <b>in line</b>"`, "means something in HTML or JSON"},
		{English, `"You are in line"`, `"You&amp;I are in line"`, "means something in HTML or JSON"},
		{English, `"You are in line"`, `"You're in line"`, "quotes must be ’"},
		{English, `"You are in line"`, `"You are \"in line\""`, "means something in HTML or JSON"},
		{English, `"You are in line"`, `"You are\nin line"`, "means something in HTML or JSON"},
		{English, `"You are in line"`, `"You are\\in line"`, "means something in HTML or JSON"},
		{English, `"You are in line"`, `"You are\u2028in line"`, "means something in HTML or JSON"},
		{English, `"You are in line"`, `"You are {n} in line"`, "can have no placeholders"},
		{English, `"You are in line"`, `"` + strings.Repeat("a", 43) + `"`, "titleInLine has 43 characters, 3 more than fit"},

		// Patterns.
		{English, `"tab": "#{position} · {title}"`, `"tab": "{title}"`, "needs {position} and {title}"},
		{English, `"{first} and {second}"`, `"{first} and {first}"`, "has the placeholder {first} twice"},
		{English, `"{first} and {second}"`, `"{first} and {third}"`, "has a placeholder other than {first} and {second}"},
		{English, `"{first} and {second}"`, `"{first} and {second"`, "has a placeholder other than {first} and {second}"},
		{English, `"{first} and {second}"`, `"{first} and second}"`, "has a } without a {"},
		{English, `"{first} and {second}"`, `"{first}, {second} and {second}"`, "has the placeholder {second} twice"},

		// Counts.
		{English, `, "other": "{n} minutes"`, ``, "minutes.other is missing"},
		{English, `"{n} minutes"`, `"minutes"`, `minutes.other: "minutes" needs {n}`},
		{English, `"other": "{n} minutes"`, `"few": "{n} minutes", "other": "{n} minutes"`, "minutes.few: no number from 1 to 59 has that form"},
		{English, `"other": "{n} minutes"`, `"plural": "{n} minutes", "other": "{n} minutes"`, "minutes.plural: there is no such form"},
		{"ru-RU", `"one": "{n} минута"`, `"one": "минута"`, `minutes.one: "минута" needs {n}`}, // 21 has the form too
		{English, `"about {low} to {high} minutes"`, `"about {high} minutes"`, "needs {low} and {high}"},
		{English, `"counts": {`, `"counts": {"weeks": {"other": "{n} weeks"},`, "weeks: there is no such key"},

		// Numbers.
		{English, `"numbers": {"group": ","`, `"numbers": {"group": " "`, `group " " is no separator`},
		{English, `"numbers": {"group": ","`, `"numbers": {"zero": "1", "group": ","`, `zero "1" is not the digit 0`},
		{English, `"numbers": {"group": ","`, `"numbers": {"zero": "x", "group": ","`, `zero "x" is not the digit 0`},
		{English, `"IN": {`, `"INDIA": {`, `regions: "INDIA"`},
		{English, `"CH": {"group": "’"}`, `"CH": {"group": "'"}`, `CH: group "'" is no separator`},
	} {
		err := loadInstead(t, m.tag, m.part, m.instead)
		switch {
		case err == nil:
			t.Errorf("%s instead of %s: no error, want %q", m.instead, m.part, m.want)
		case !strings.Contains(err.Error(), m.want) || !strings.HasPrefix(err.Error(), "texts/"+m.tag+".json: "):
			t.Errorf("%s instead of %s: got %q, want %q", m.instead, m.part, err, m.want)
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
