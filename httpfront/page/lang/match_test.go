package lang

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/must"
)

var matches = []struct {
	want    Tag
	accepts []string
}{
	{"de-DE", []string{"de-DE", "de", "DE-de", "de_DE", "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7", "de-CH-1996", "de-Latn-LU", "gsw"}},

	// Weights.
	{"fr-FR", []string{"en;q=0.5,fr", "en;q=0.5, fr;q=0.501", "en;q=0,fr;q=0.001", "fr;q=1.,ja", "fr;"}},
	{"it-IT", []string{"it;q=0.3,fr;q=0.30,nl;q=0.300"}},
	{"en-US", []string{"fr;q=0", "fr;q=0.0, *;q=0.5"}},
	{"ja-JP", []string{"fr;Q=0.4,ja;q=1.000", "fr ; q=0.2 ,\tja\t;\tq=0.3\t"}},

	// What is no weight asks for nothing.
	{"ja-JP", []string{"fr;q=2,ja;q=0.1", "fr;q=1.001,ja;q=0.1", "fr;q=0.1234,ja;q=0.1", "fr;q=-1,ja;q=0.1", "fr;q=,ja;q=0.1"}},
	{"ja-JP", []string{"fr;q=.9,ja;q=0.1", "fr;q=1e0,ja;q=0.1", "fr;level=1,ja;q=0.1"}},
	{"en-US", []string{"fr;q=0,5;ja"}},

	// Anything will do.
	{"en-US", []string{"", "*"}},
	{"fr-FR", []string{"*,fr;q=0.1"}},

	// Chinese.
	{"zh-CN", []string{"zh", "zh-CN", "zh-SG", "zh-Hans", "zh-Hans-HK", "zh-yue", "yue-Hans-CN"}},
	{"zh-TW", []string{"zh-Hant", "zh-Hant-CN", "zh-TW", "zh-HK", "zh-MO", "yue", "cmn-Hant"}},

	// Regions and scripts that are not there count as the language.
	{"sr-BA", []string{"sr-Latn-RS,sr;q=0.9,en-US;q=0.8"}}, // reads both
	{"fr-FR", []string{"sr-ME,fr;q=0.1"}},                  // written in Latin letters unless it says otherwise
	{"de-DE", []string{"de-1996-Latn"}},                    // no script there
	{"pt-BR", []string{"pt", "pt-PT"}},
	{"es-ES", []string{"es-419", "es-MX,en;q=0.9"}},
	{"fr-FR", []string{"fr-CA", "cnr,fr;q=0.1"}},
	{"en-US", []string{"en-GB", "sr-Latn", "hi-Latn-IN,en;q=0.5"}},
	{"sr-BA", []string{"sr", "sr-RS", "sr-Latn,sr-Cyrl;q=0.5", "sr-Cyrl-ME", "cnr-Cyrl-ME", "sr-Cyrl-RS"}},
	{"de-DE", []string{"sr-Latn-RS,de;q=0.3", "bs-Cyrl-BA,de"}},
	{"hr-HR", []string{"sr_latn_BA,hr;q=0.3", "bs-Latn-BA"}},
	{"hi-IN", []string{"hi-Deva"}},
	{"ja-JP", []string{"zh-Latn-pinyin,ja", "ja-Jpan-JP"}},
	{"ko-KR", []string{"ko-Kore"}},
	{"ar-EG", []string{"ar-Arab-EG", "ar", "ar-SA"}},
	{"ru-RU", []string{"uz-Latn-UZ"}},

	// Other names of a language.
	{"nb-NO", []string{"no", "no-NO", "nn", "nn-NO,en;q=0.5"}},
	{"tl-PH", []string{"fil", "fil-PH"}},
	{"he-IL", []string{"iw", "iw-IL"}},
	{"id-ID", []string{"in", "in-ID"}},
	{"fr-FR", []string{"sh,fr;q=0.1"}},
	{"sr-BA", []string{"sh-Cyrl"}},
	{"hr-HR", []string{"bs-BA"}},
	{"ro-RO", []string{"mo"}},
	{"ar-EG", []string{"arb"}},

	// Neighbours come after all that was asked for.
	{"es-ES", []string{"ca", "ca-ES,es;q=0.9,en;q=0.8"}},
	{"en-US", []string{"ca,en;q=0.1", "cy,fr;q=0"}},
	{"ru-RU", []string{"ca;q=0.2,kk;q=0.3", "kk-KZ,ru;q=0.9,en;q=0.8"}},

	// What no browser sends.
	{"en-US", []string{",", ";q=1", "-", "-de", "d", "dex", "de DE", "fr\n", "русский", "de-" + strings.Repeat("x", longestTag)}},
	{"en-US", []string{strings.Repeat("x", 1<<20), strings.Repeat("de-", 1<<18), strings.Repeat(",", mostRanges) + "fr"}},
	{"en-US", []string{strings.Repeat("xx,", 1<<18) + "fr"}},
	{"fr-FR", []string{",,fr,,", "i-klingon, x-pig-latin, fr;q=0.1", "\x00\xff,fr", "<script>,fr;q=0.1"}},
	{"fr-FR", []string{strings.Repeat(",", mostRanges-1) + "fr"}},
	{"de-DE", []string{"de-", "de--DE"}},
	{"ru-RU", []string{"mn-\x80\xf0\xba0000000000000000000000"}},
}

func TestMatch(t *testing.T) {
	for _, m := range matches {
		for _, accept := range m.accepts {
			got, asBytes := Match(accept, English).Tag(), Match([]byte(accept), English).Tag()
			if got != m.want || asBytes != m.want {
				t.Errorf("%.60q: got %s, and %s as bytes, want %s", accept, got, asBytes, m.want)
			}
		}
	}
}

func TestMatchEveryTag(t *testing.T) {
	for _, l := range All() {
		for _, accept := range []string{l.Tag(), strings.ToLower(l.Tag()), strings.ToUpper(l.Tag()), l.Tag() + "-x-own"} {
			if got := Match(accept, English); got != l {
				t.Errorf("%s: got %s", accept, got.Tag())
			}
		}
	}
}

func TestMatchFallback(t *testing.T) {
	for _, m := range []struct{ accept, fallback, want Tag }{
		{"", "th-TH", "th-TH"},
		{"*", "th-TH", "th-TH"},
		{"tlh", "th-TH", "th-TH"},
		{"en", "th-TH", "en-US"},
		{"ca", "th-TH", "es-ES"},
		{"", "", English},
		{"", "th", English}, // only whole tags are known
		{"", "xx-XX", English},
	} {
		equal(t, string(m.accept+" or "+m.fallback), Match(m.accept, m.fallback).Tag(), m.want)
	}
}

// TestMatchRegions has regions that CLDR's numbers are not given of (see TestNumbersAreThoseOfCLDR), and one in small letters.
func TestMatchRegions(t *testing.T) {
	for accept, want := range map[string]string{"en-GB": "1,234,567", "es-MX": "1,234,567", "es-ES": "1.234.567", "pt-pt": "1\u00a0234\u00a0567"} {
		l := Match(accept, English)
		if got := string(l.AppendNumber(nil, 1234567)); got != want || Of(l.Tag()).wording != l.wording {
			t.Errorf("%s: got %q in the words of %s, want %q", accept, got, l.Tag(), want)
		}
	}
}

// TestNamesAreKnownOnce finds languages that are named twice.
func TestNamesAreKnownOnce(t *testing.T) {
	seen := map[string]string{}
	for _, l := range All() {
		first, _, _ := strings.Cut(l.Tag(), "-")
		seen[first] = l.Tag()
	}
	for _, l := range All() {
		for _, name := range slices.Concat(l.names, l.readBy) {
			if other, ok := seen[name]; ok {
				t.Errorf("%s is named for %s and for %s", name, other, l.Tag())
			}
			seen[name] = l.Tag()
			if len(name) > longestTag || strings.ToLower(name) != name {
				t.Errorf("%s: no tag is looked up as %q", l.Tag(), name)
			}
		}
	}
}

var plainWeight = regexp.MustCompile(`^[qQ]=(0(\.[0-9]{0,3})?|1(\.0{0,3})?)$`)

var plainScript = regexp.MustCompile(`^[a-z]{4}$`)

// plainMatch is Match as it would be written without a thought of its cost.
func plainMatch(accept string, fallback Tag) *Language {
	known := loaded().wanted
	var best [2]*Language // those asked for, and neighbours
	var weights [2]float64
	for i, element := range strings.Split(accept, ",") {
		tag, params, _ := strings.Cut(element, ";")
		tag = strings.ReplaceAll(lower(strings.Trim(tag, " \t")), "_", "-")
		params = cmp.Or(strings.Trim(params, " \t"), "q=1")
		if i >= mostRanges || len(tag) > longestTag || !plainWeight.MatchString(params) {
			continue
		}
		w := must.Do(strconv.ParseFloat(params[2:], 64))
		parts := strings.Split(tag, "-")
		for n := len(parts); n > 0; n-- {
			c, ok := known[strings.Join(parts[:n], "-")]
			if !ok {
				continue
			}
			if c.language == nil || !c.near && n < len(parts) && plainScript.MatchString(parts[n]) && parts[n] != c.script {
				break
			}
			list := 0
			if c.near {
				list = 1
			}
			if w > weights[list] {
				best[list], weights[list] = c.language, w
			}
			break
		}
	}
	return cmp.Or(best[0], best[1], Of(fallback), Of(English))
}

// lower is strings.ToLower for ASCII alone, and leaves all other bytes alone.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func FuzzMatch(f *testing.F) {
	for _, m := range matches {
		for _, accept := range m.accepts {
			if len(accept) < 1000 {
				f.Add(accept, "de-DE")
			}
		}
	}
	for _, l := range All() {
		f.Add(l.Tag()+",en;q=0.5", l.Tag())
	}
	f.Fuzz(func(t *testing.T, accept, fallback string) {
		got := Match(accept, fallback)
		want, bytes := plainMatch(accept, fallback), Match([]byte(accept), fallback)
		if got != want || bytes != want {
			t.Errorf("got %s, and %s as bytes, want %s", got.Tag(), bytes.Tag(), want.Tag())
		}
		if again := Match("*;q=0.9,"+accept, fallback); strings.Count(accept, ",") < mostRanges-1 && again != got {
			t.Errorf("got %s behind a *, and %s alone", again.Tag(), got.Tag())
		}
	})
}

// equal fails the test unless got is want.
func equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}
