package lang

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
)

// cldrFacts is what testdata/cldr.mjs noted of one language.
type cldrFacts struct {
	Numbers []string            `json:"numbers"` // of cldrNumbers
	Regions map[string][]string `json:"regions"` // the same for regions that differ
	Clock   []string            `json:"clock"`   // of cldrTimes
	Plurals string              `json:"plurals"` // a letter of cldrForms for 0, 1, 2 and so on
	Minutes []string            `json:"minutes"` // of as many as counts says
	Hours   []string            `json:"hours"`
	Days    []string            `json:"days"`
}

var (
	cldrNumbers = []int{7, 1234, 12345, 1234567}
	cldrTimes   = []string{"00:00:00", "03:04:05", "12:00:00", "15:04:05"}
	cldrForms   = map[byte]string{'z': "zero", '1': "one", '2': "two", 'f': "few", 'm': "many", 'o': "other"}
)

// readCLDR returns the facts by tag, and of which counts they have the units.
func readCLDR(t *testing.T) (languages map[Tag]cldrFacts, counts []int) {
	t.Helper()
	src := must.Do(os.ReadFile("testdata/cldr.json"))
	var all struct {
		Counts    []int                `json:"counts"`
		Languages map[string]cldrFacts `json:"languages"`
	}
	must.OK(json.Unmarshal(src, &all))
	for _, l := range All() {
		if _, ok := all.Languages[l.Tag()]; !ok {
			t.Fatalf("testdata/cldr.json has no %s; make it anew as testdata/cldr.mjs says", l.Tag())
		}
	}
	return all.Languages, all.Counts
}

// numbersOf writes what cldrFacts.Numbers has.
func numbersOf(l *Language) (all []string) {
	for _, n := range cldrNumbers {
		all = append(all, string(l.AppendNumber(nil, n)))
	}
	return all
}

// TestNumbersAreThoseOfCLDR compares the numbers of every language and of every
// region that writes them in another way.
func TestNumbersAreThoseOfCLDR(t *testing.T) {
	languages, _ := readCLDR(t)
	// CLDR has U+0027 for Switzerland, which means something in HTML.
	plain := func(all []string) []string {
		return strings.Split(strings.ReplaceAll(strings.Join(all, "|"), "'", "’"), "|")
	}
	for _, l := range All() {
		facts := languages[l.Tag()]
		if got := numbersOf(l); !slices.Equal(got, plain(facts.Numbers)) {
			t.Errorf("%s: got %q, want %q", l.Tag(), got, facts.Numbers)
		}
		first, _, _ := strings.Cut(l.Tag(), "-")
		for _, region := range slices.Sorted(maps.Keys(facts.Regions)) {
			for _, accept := range []string{first + "-" + region, first + "-" + region + "-1996;q=0.4"} {
				other := Match(accept, English)
				if got := numbersOf(other); other.Tag() != l.Tag() || other.wording != l.wording || !slices.Equal(got, plain(facts.Regions[region])) {
					t.Errorf("%s: got %s with %q, want %q and its words", accept, other.Tag(), got, facts.Regions[region])
				}
			}
		}
	}
}

// TestNoRegionIsNeedless finds regions with the numbers of their language.
func TestNoRegionIsNeedless(t *testing.T) {
	languages, _ := readCLDR(t)
	_, regions, err := load(files)
	for _, r := range must.Do(regions, err) {
		if _, ok := languages[r.Tag()].Regions[r.region]; !ok {
			t.Errorf("%s: region %s writes numbers as the language does", r.Tag(), r.region)
		}
	}
	if len(regions) == 0 {
		t.Error("there are no regions")
	}
}

// TestPluralsAreThoseOfCLDR checks that every count has a text for each form
// that CLDR gives to one of its numbers, and that this text is the one taken:
// the rules of golang.org/x/text are of an older version.
func TestPluralsAreThoseOfCLDR(t *testing.T) {
	languages, _ := readCLDR(t)
	for _, l := range All() {
		plurals := languages[l.Tag()].Plurals
		for c, spec := range countSpecs {
			for n := spec.low; n <= spec.high; n++ {
				name := cldrForms[plurals[n]]
				want := l.counts[c][slices.Index(formNames[:], name)]
				if want == (pattern{}) {
					t.Errorf("%s: %s.%s is missing, the form of %d", l.Tag(), spec.key, name, n)
					break
				}
				if got := *l.form(count(c), n); got != want {
					t.Errorf("%s: %s for %d is %q, but it has the form %s", l.Tag(), spec.key, n, got.text, name)
					break
				}
			}
		}
	}
}

// ownUnits are the words for units that stand for CLDR's, and why they do.
var ownUnits = map[Tag]map[string]string{
	// CLDR leaves the number 1 out altogether, which reads as if one were missing.
	"ar-EG": {"دقيقة": "دقيقة واحدة", "ساعة": "ساعة واحدة", "يوم": "يوم واحد"},
	// What comes second in a span has a prefix with a maqaf, which needs a digit;
	// a day never comes second.
	"he-IL": {"שתי דקות": "2 דקות", "שעתיים": "2 שעות", "1 יום": "יום אחד"},
}

// TestUnitsAreThoseOfCLDR compares minutes, hours and days, but for spaces.
func TestUnitsAreThoseOfCLDR(t *testing.T) {
	languages, counts := readCLDR(t)
	for _, l := range All() {
		facts := languages[l.Tag()]
		own := maps.Clone(ownUnits[l.Tag()])
		for c, all := range [...][]string{countMinutes: facts.Minutes, countHours: facts.Hours, countDays: facts.Days} {
			for i, n := range counts {
				if n > countSpecs[c].high {
					continue
				}
				want := all[i]
				if instead, ok := own[want]; ok {
					delete(own, want)
					want = instead
				}
				equal(t, fmt.Sprint(l.Tag(), n, countSpecs[c].key), spaceless(string(l.appendCount(nil, count(c), n))), spaceless(want))
			}
		}
		for want := range own {
			t.Errorf("%s: CLDR does not write %q", l.Tag(), want)
		}
	}
}

func spaceless(s string) string {
	return strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "").Replace(s)
}

// ownClocks are the clock times that are not CLDR's, and why they are right.
var ownClocks = map[Tag][]string{
	// Where CLDR 48 has AM and PM for Korean, people there write these.
	"ko-KR": {"오전 12:00:00", "오전 3:04:05", "오후 12:00:00", "오후 3:04:05"},
	// ICU takes parts of the day that are finer than CLDR's pattern asks for.
	"zh-TW": {"上午12:00:00", "上午3:04:05", "下午12:00:00", "下午3:04:05"},
}

func TestClocksAreThoseOfCLDR(t *testing.T) {
	languages, _ := readCLDR(t)
	for _, l := range All() {
		all := languages[l.Tag()].Clock
		if own, ok := ownClocks[l.Tag()]; ok {
			all = own
		}
		for i, want := range all {
			got := string(l.AppendClock(nil, must.Do(time.Parse(time.TimeOnly, cldrTimes[i]))))
			equal(t, string(l.Tag())+", "+cldrTimes[i], spaceless(got), spaceless(want)+"UTC")
		}
	}
}
