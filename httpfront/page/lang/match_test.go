package lang

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var matches = []struct{ accept, want string }{
	{"de-DE", "de-DE"},
	{"de", "de-DE"},
	{"DE-de", "de-DE"},
	{"de_DE", "de-DE"},
	{"de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7", "de-DE"},
	{"de-CH-1996", "de-DE"},
	{"de-Latn-LU", "de-DE"},
	{"gsw", "de-DE"},

	// Weights.
	{"en;q=0.5,fr", "fr-FR"},
	{"en;q=0.5, fr;q=0.501", "fr-FR"},
	{"it;q=0.3,fr;q=0.30,nl;q=0.300", "it-IT"},
	{"en;q=0,fr;q=0.001", "fr-FR"},
	{"fr;q=0", "en-US"},
	{"fr;q=0.0, *;q=0.5", "en-US"},
	{"fr;Q=0.4,ja;q=1.000", "ja-JP"},
	{"fr;q=1.,ja", "fr-FR"},
	{"fr ; q=0.2 ,\tja\t;\tq=0.3\t", "ja-JP"},
	{"fr;", "fr-FR"},

	// What is no weight asks for nothing.
	{"fr;q=2,ja;q=0.1", "ja-JP"},
	{"fr;q=1.001,ja;q=0.1", "ja-JP"},
	{"fr;q=0.1234,ja;q=0.1", "ja-JP"},
	{"fr;q=-1,ja;q=0.1", "ja-JP"},
	{"fr;q=,ja;q=0.1", "ja-JP"},
	{"fr;q=0,5;ja", "en-US"},
	{"fr;q=.9,ja;q=0.1", "ja-JP"},
	{"fr;q=1e0,ja;q=0.1", "ja-JP"},
	{"fr;level=1,ja;q=0.1", "ja-JP"},

	// Anything will do.
	{"", "en-US"},
	{"*", "en-US"},
	{"*,fr;q=0.1", "fr-FR"},

	// Chinese.
	{"zh", "zh-CN"},
	{"zh-CN", "zh-CN"},
	{"zh-SG", "zh-CN"},
	{"zh-Hans", "zh-CN"},
	{"zh-Hans-HK", "zh-CN"},
	{"zh-Hant", "zh-TW"},
	{"zh-Hant-CN", "zh-TW"},
	{"zh-TW", "zh-TW"},
	{"zh-HK", "zh-TW"},
	{"zh-MO", "zh-TW"},
	{"zh-yue", "zh-CN"},
	{"yue", "zh-TW"},
	{"yue-Hans-CN", "zh-CN"},
	{"cmn-Hant", "zh-TW"},

	// Regions and scripts that are not there count as the language.
	{"pt", "pt-BR"},
	{"pt-PT", "pt-BR"},
	{"es-419", "es-ES"},
	{"es-MX,en;q=0.9", "es-ES"},
	{"fr-CA", "fr-FR"},
	{"en-GB", "en-US"},
	{"sr", "sr-BA"},
	{"sr-RS", "sr-BA"},
	{"sr-Latn", "en-US"},
	{"sr-Latn-RS,de;q=0.3", "de-DE"},
	{"sr_latn_BA,hr;q=0.3", "hr-HR"},
	{"sr-Latn-RS,sr;q=0.9,en-US;q=0.8", "sr-BA"}, // reads both
	{"sr-Latn,sr-Cyrl;q=0.5", "sr-BA"},
	{"sr-ME,fr;q=0.1", "fr-FR"}, // written in Latin letters unless it says otherwise
	{"sr-Cyrl-ME", "sr-BA"},
	{"cnr,fr;q=0.1", "fr-FR"},
	{"cnr-Cyrl-ME", "sr-BA"},
	{"hi-Latn-IN,en;q=0.5", "en-US"},
	{"hi-Deva", "hi-IN"},
	{"bs-Latn-BA", "hr-HR"},
	{"bs-Cyrl-BA,de", "de-DE"},
	{"zh-Latn-pinyin,ja", "ja-JP"},
	{"ja-Jpan-JP", "ja-JP"},
	{"ko-Kore", "ko-KR"},
	{"ar-Arab-EG", "ar-EG"},
	{"uz-Latn-UZ", "ru-RU"},
	{"de-1996-Latn", "de-DE"}, // no script there
	{"sr-Cyrl-RS", "sr-BA"},
	{"ar", "ar-EG"},
	{"ar-SA", "ar-EG"},

	// Other names of a language.
	{"no", "nb-NO"},
	{"no-NO", "nb-NO"},
	{"nn", "nb-NO"},
	{"nn-NO,en;q=0.5", "nb-NO"},
	{"fil", "tl-PH"},
	{"fil-PH", "tl-PH"},
	{"iw", "he-IL"},
	{"iw-IL", "he-IL"},
	{"in", "id-ID"},
	{"in-ID", "id-ID"},
	{"sh,fr;q=0.1", "fr-FR"},
	{"sh-Cyrl", "sr-BA"},
	{"bs-BA", "hr-HR"},
	{"mo", "ro-RO"},
	{"arb", "ar-EG"},

	// Neighbours come after all that was asked for.
	{"ca", "es-ES"},
	{"ca-ES,es;q=0.9,en;q=0.8", "es-ES"},
	{"ca,en;q=0.1", "en-US"},
	{"ca;q=0.2,kk;q=0.3", "ru-RU"},
	{"kk-KZ,ru;q=0.9,en;q=0.8", "ru-RU"},
	{"cy,fr;q=0", "en-US"},

	// What no browser sends.
	{",", "en-US"},
	{",,fr,,", "fr-FR"},
	{";q=1", "en-US"},
	{"-", "en-US"},
	{"-de", "en-US"},
	{"de-", "de-DE"},
	{"de--DE", "de-DE"},
	{"d", "en-US"},
	{"dex", "en-US"},
	{"de DE", "en-US"},
	{"i-klingon, x-pig-latin, fr;q=0.1", "fr-FR"},
	{"\x00\xff,fr", "fr-FR"},
	{"fr\n", "en-US"},
	{"<script>,fr;q=0.1", "fr-FR"},
	{"русский", "en-US"},
	{"mn-\x80\xf0\xba0000000000000000000000", "ru-RU"},
	{"de-" + strings.Repeat("x", longestTag), "en-US"},
	{strings.Repeat("x", 1<<20), "en-US"},
	{strings.Repeat("de-", 1<<18), "en-US"},
	{strings.Repeat(",", mostRanges-1) + "fr", "fr-FR"},
	{strings.Repeat(",", mostRanges) + "fr", "en-US"},
	{strings.Repeat("xx,", 1<<18) + "fr", "en-US"},
}

func TestMatch(t *testing.T) {
	for _, m := range matches {
		if got := Match(m.accept, English).Tag(); got != m.want {
			t.Errorf("%.60q: got %s, want %s", m.accept, got, m.want)
		}
		if got := Match([]byte(m.accept), English).Tag(); got != m.want {
			t.Errorf("%.60q as bytes: got %s, want %s", m.accept, got, m.want)
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
	for _, m := range []struct {
		accept   string
		fallback Tag
		want     Tag
	}{
		{"", "th-TH", "th-TH"},
		{"*", "th-TH", "th-TH"},
		{"tlh", "th-TH", "th-TH"},
		{"en", "th-TH", "en-US"},
		{"ca", "th-TH", "es-ES"},
		{"", "", English},
		{"", "th", English}, // only whole tags are known
		{"", "xx-XX", English},
	} {
		if got := Match(m.accept, m.fallback).Tag(); got != m.want {
			t.Errorf("%q or %q: got %s, want %s", m.accept, m.fallback, got, m.want)
		}
	}
}

// TestMatchRegions shows that a region changes the numbers and nothing else.
func TestMatchRegions(t *testing.T) {
	for accept, want := range map[string]string{
		"en-IN": "12,34,567", "en-GB": "1,234,567", "en-ZA": "1\u00a0234\u00a0567",
		"de-CH": "1’234’567", "de-AT": "1\u00a0234\u00a0567", "de-CH-1996": "1’234’567",
		"es-ES": "1.234.567", "es-MX": "1,234,567", "es-419": "1,234,567", "es-AR": "1.234.567",
		"pt-BR": "1.234.567", "pt-PT": "1\u00a0234\u00a0567", "pt-pt;q=0.4": "1\u00a0234\u00a0567",
		"ar-EG": "١٬٢٣٤٬٥٦٧", "ar-MA": "1.234.567", "ar-AE": "1,234,567",
	} {
		l := Match(accept, English)
		if got := string(l.AppendNumber(nil, 1234567)); got != want {
			t.Errorf("%s: got %q, want %q", accept, got, want)
		}
		if of := Of(l.Tag()); of.wording != l.wording {
			t.Errorf("%s has other words than %s", accept, l.Tag())
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
		if i == mostRanges {
			break
		}
		tag, params, _ := strings.Cut(element, ";")
		tag = strings.ReplaceAll(lower(strings.Trim(tag, " \t")), "_", "-")
		params = strings.Trim(params, " \t")
		w := 1.0
		if params != "" {
			if !plainWeight.MatchString(params) {
				continue
			}
			w, _ = strconv.ParseFloat(params[2:], 64)
		}
		if len(tag) > longestTag {
			continue
		}
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
	for _, l := range append(best[:], Of(fallback)) {
		if l != nil {
			return l
		}
	}
	return Of(English)
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
		if len(m.accept) < 1000 {
			f.Add(m.accept, "de-DE")
		}
	}
	for _, l := range All() {
		f.Add(l.Tag()+",en;q=0.5", l.Tag())
	}
	f.Fuzz(func(t *testing.T, accept, fallback string) {
		got := Match(accept, fallback)
		if want := plainMatch(accept, fallback); got != want {
			t.Errorf("got %s, want %s", got.Tag(), want.Tag())
		}
		if bytes := Match([]byte(accept), fallback); bytes != got {
			t.Errorf("got %s as bytes, and %s as a string", bytes.Tag(), got.Tag())
		}
		if again := Match("*;q=0.9,"+accept, fallback); strings.Count(accept, ",") < mostRanges-1 && again != got {
			t.Errorf("got %s behind a *, and %s alone", again.Tag(), got.Tag())
		}
	})
}
