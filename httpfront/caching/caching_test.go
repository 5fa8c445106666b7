package caching

import "testing"

func TestAppendKept(t *testing.T) {
	for list, want := range map[string]string{
		"":                    "private",
		"public, max-age=600": "private, max-age=600",
		"public,s-maxage=5,MAX-AGE=600 , immutable": "private, max-age=600, immutable",
		"no-store":                                "private, no-store",
		"private, no-cache, must-revalidate":      "private, no-cache, must-revalidate",
		`no-cache="set-cookie, x-y", max-age=5`:   "private, no-cache, max-age=5",
		`private="max-age, public", x="no-store"`: "private",
		`max-age="600"`:                           "private, max-age", // no age that a browser would go by
		"max-age=600, stale-if-error=5, proxy-revalidate, must-understand": "private, max-age=600, stale-if-error=5",
		"max-age=1, max-age=2": "private, max-age=1, max-age=2",
		", ,=,public=":         "private",
	} {
		if got := string(AppendKept([]byte(Private), list)); got != want {
			t.Errorf("%s: %s, want %s", list, got, want)
		}
	}
}
