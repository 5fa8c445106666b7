package lang

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/ropeline/ropeline/bench/must"
)

// promised are the languages that settings of rooms may name.
var promised = strings.Fields("en-US es-ES de-DE fr-FR it-IT ja-JP ko-KR pt-BR zh-CN zh-TW nl-NL pl-PL id-ID tr-TR " +
	"ar-EG ru-RU fa-IR bg-BG hr-HR cs-CZ da-DK fi-FI lt-LT ms-MY nb-NO ro-RO el-GR he-IL hi-IN hu-HU sr-BA sk-SK " +
	"sl-SI sv-SE tl-PH th-TH uk-UA vi-VN")

func TestAllLanguagesAreThere(t *testing.T) {
	want := slices.Sorted(slices.Values(promised))
	if !slices.EqualFunc(All(), want, func(l *Language, tag Tag) bool { return l.Tag() == tag && Of(tag) == l }) || !slices.Equal(Tags(), want) {
		t.Errorf("got languages %v and tags %q, want %v", All(), Tags(), want)
	}
	if All()[0] = nil; All()[0] == nil {
		t.Error("what All returned could be changed")
	}
	for _, tag := range []string{"", "de", "de-de", "xx-XX"} {
		if Of(tag) != nil {
			t.Errorf("there is a language %q", tag)
		}
	}
}

// TestAllLanguagesAreDocumented reads the table that operators read.
func TestAllLanguagesAreDocumented(t *testing.T) {
	page := string(must.Do(os.ReadFile("../../../docs/languages.md")))
	for _, l := range All() {
		if !strings.Contains(page, "| `"+l.Tag()+"` |") {
			t.Errorf("docs/languages.md has no %s", l.Tag())
		}
	}
	if count := fmt.Sprintf(" %d languages", len(All())); !strings.Contains(page, count) {
		t.Errorf("docs/languages.md does not say that there are%s", count)
	}
}

// sameAsEnglish lists the texts that are right although they are the English
// ones.
var sameAsEnglish = map[string][]string{"fr-FR": {"minutes"}}

func TestNoEnglishIsLeft(t *testing.T) {
	english := wordsOf(Of(English))
	for _, l := range All() {
		if l.Tag() == English {
			continue
		}
		for key, text := range wordsOf(l) {
			allowed := slices.Contains(sameAsEnglish[l.Tag()], key)
			switch same := strings.EqualFold(text, english[key]); {
			case same && !allowed:
				t.Errorf("%s: %s is English: %q", l.Tag(), key, text)
			case !same && allowed:
				t.Errorf("%s: %s may be English, but is %q", l.Tag(), key, text)
			}
		}
	}
}

// wordsOf returns all texts and patterns of a language by key, those of counts
// by the form of 2 and without what is filled in.
func wordsOf(l *Language) map[string]string {
	all := map[string]string{}
	for i := range textCount {
		all[Text(i).String()] = l.Text(Text(i))
	}
	for j, spec := range jointSpecs {
		all[spec.key] = strings.Join(l.joints[j].text[:], "…")
	}
	for c, spec := range countSpecs {
		all[spec.key] = strings.Join(l.form(count(c), 2).text[:], "…")
	}
	return all
}

// TestLettersAreOfTheScript finds look-alikes of other scripts and what was
// pasted into the wrong file.
func TestLettersAreOfTheScript(t *testing.T) {
	scripts := map[string][]*unicode.RangeTable{
		"Latn": {unicode.Latin}, "Cyrl": {unicode.Cyrillic}, "Grek": {unicode.Greek}, "Hebr": {unicode.Hebrew},
		"Arab": {unicode.Arabic}, "Deva": {unicode.Devanagari}, "Thai": {unicode.Thai}, "Hans": {unicode.Han},
		"Hant": {unicode.Han}, "Jpan": {unicode.Han, unicode.Hiragana, unicode.Katakana}, "Kore": {unicode.Hangul},
	}
	for _, l := range All() {
		script, _ := language.MustParse(l.Tag()).Script()
		tables := scripts[script.String()]
		if tables == nil {
			t.Fatalf("%s: no letters of script %s are known", l.Tag(), script)
		}
		for key, text := range wordsOf(l) {
			for _, c := range text {
				if unicode.IsLetter(c) && !unicode.IsOneOf(tables, c) && c != 'ー' {
					t.Errorf("%s: %s has %q, which is not of script %s: %q", l.Tag(), key, c, script, text)
				}
			}
		}
	}
}

// TestPunctuation finds sentences that do not end, and titles and labels that
// do.
func TestPunctuation(t *testing.T) {
	for _, l := range All() {
		for i, spec := range textSpecs {
			text := l.Text(Text(i))
			last, _ := utf8.DecodeLastRuneInString(text)
			stops := strings.ContainsRune(".。।…", last)
			sentence := spec.kind == message || spec.kind == hint
			if l.Tag() == "th-TH" {
				sentence = false // Thai has no full stop
				stops = last == '.'
			}
			spaced := !slices.ContainsFunc([]string{"  ", " .", "...", " ,"}, func(bad string) bool { return strings.Contains(text, bad) })
			if stops != sentence || !spaced {
				t.Errorf("%s: %s ends with %q, and is well spaced: %v: %q", l.Tag(), spec.key, last, spaced, text)
			}
		}
	}
}

// TestTextsDiffer finds a text that stands where another one belongs.
func TestTextsDiffer(t *testing.T) {
	for _, l := range All() {
		seen := map[string]string{}
		for i := range textCount {
			text := l.Text(Text(i))
			if other, ok := seen[text]; ok {
				t.Errorf("%s: %s and %s are the same: %q", l.Tag(), other, Text(i), text)
			}
			seen[text] = Text(i).String()
		}
	}
}

// TestNoTextIsDead: 38 languages are a lot of work for a text that nobody shows.
func TestNoTextIsDead(t *testing.T) {
	var src strings.Builder
	for _, pattern := range []string{"../../*.go", "../*.go", "*.go"} {
		for _, name := range must.Do(filepath.Glob(pattern)) {
			if !strings.HasSuffix(name, "_test.go") && name != "texts.go" {
				src.Write(must.Do(os.ReadFile(name)))
			}
		}
	}
	shown := map[string]bool{}
	for _, use := range regexp.MustCompile(`(?:lang\.|texts\[)(\w+)`).FindAllStringSubmatch(src.String(), -1) {
		shown[use[1]] = true
	}
	for i := range textCount {
		key := Text(i).String()
		if constant := strings.ToUpper(key[:1]) + key[1:]; !shown[constant] {
			t.Errorf("%s is shown by nothing", constant)
		}
	}
}
